#include "supervisor/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth {
namespace {

std::optional<DaemonOptions> parse(std::vector<std::string> words, int& exit_code) {
  words.insert(words.begin(), "berthd");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto options = parse_options(static_cast<int>(argv.size()), argv.data(), exit_code);
  testing::internal::GetCapturedStdout();
  testing::internal::GetCapturedStderr();
  return options;
}

TEST(Options, ADemoDirectoryBecomesAbsolute) {
  int exit_code = -1;
  const auto options = parse({"--demo", "/tmp/x/../y/", "--log-format", "json"}, exit_code);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->demo_dir, "/tmp/y");
  EXPECT_EQ(options->log_format, LogFormat::kJson);
}

TEST(Options, WrongUseEndsWithTwo) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--nonsense"},
                                                                 {"--log-format", "xml"},
                                                                 {"--demo"},
                                                                 {"--demo", "a", "--config", "b"},
                                                                 {"stray"}}) {
    int exit_code = -1;
    EXPECT_FALSE(parse(words, exit_code)) << words.front();
    EXPECT_EQ(exit_code, 2) << words.front();
  }
}

TEST(Options, HelpAndVersionEndWithZero) {
  for (const std::string word : {"--help", "--version"}) {
    int exit_code = -1;
    EXPECT_FALSE(parse({word}, exit_code));
    EXPECT_EQ(exit_code, 0);
  }
}

}  // namespace
}  // namespace berth
