// Every log of tests/fixtures/logs, in the three ways that its README names.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/core/log/log_run.h"

namespace berth::core {
namespace {

using test::kPause;
using test::LogRun;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Case {
  std::string name;
  std::string log;
  bool expected = false;
  std::string failure_class;
  std::string exception;
  std::string reason;
  std::vector<std::size_t> ends;  // of the pieces
  std::size_t verdict_after = 0;
};

Case read_case(const std::filesystem::path& json_path) {
  Case one;
  one.name = json_path.stem().string();
  one.log = read_file(std::filesystem::path(json_path).replace_extension(".log"));
  const auto json = boost::json::parse(read_file(json_path)).as_object();
  const auto& expect = json.at("expect");
  one.expected = expect.is_object();
  if (one.expected) {
    const auto text = [&expect](const char* key) {
      const auto& value = expect.as_object().at(key);
      return value.is_string() ? std::string(value.as_string()) : std::string();
    };
    one.failure_class = text("class");
    one.exception = text("exception");
    one.reason = text("reason");
  }
  if (const auto* chunks = json.if_contains("chunks")) {
    for (const auto& end : chunks->as_array()) one.ends.push_back(end.to_number<std::size_t>());
  }
  if (one.ends.empty() || one.ends.back() != one.log.size()) one.ends.push_back(one.log.size());
  const auto* after = json.if_contains("verdict_after");
  one.verdict_after = after != nullptr ? after->to_number<std::size_t>() : one.log.size();
  return one;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(BERTH_LOG_FIXTURES)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

class LogFixture : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    one_ = read_case(std::string(BERTH_LOG_FIXTURES) + "/" + GetParam() + ".json");
  }

  void expect_verdict(const LogRun& run) {
    ASSERT_EQ(run.verdict().has_value(), one_.expected)
        << (run.verdict() ? testing::PrintToString(*run.verdict()) : "no verdict");
    if (!one_.expected) return;
    EXPECT_EQ(run.verdicts, 1);
    EXPECT_EQ(failure_class_name(run.verdict()->failure_class), one_.failure_class);
    EXPECT_EQ(run.verdict()->exception, one_.exception);
    EXPECT_EQ(run.verdict()->reason, one_.reason);
  }

  Case one_;
};

TEST_P(LogFixture, Whole) {
  LogRun run;
  run.write(one_.log);
  run.wait(kPause);
  expect_verdict(run);
  run.end();
  expect_verdict(run);
}

TEST_P(LogFixture, WholeOfAProcessThatEnded) {
  LogRun run;
  run.write(one_.log);
  run.end();
  expect_verdict(run);
}

TEST_P(LogFixture, InPieces) {
  LogRun run;
  std::size_t begin = 0;
  for (const std::size_t end : one_.ends) {
    EXPECT_FALSE(run.verdict().has_value() && begin < one_.verdict_after) << "before " << begin;
    run.write(std::string_view(one_.log).substr(begin, end - begin));
    run.wait(kPause);
    if (end >= one_.verdict_after) expect_verdict(run);
    begin = end;
  }
}

TEST_P(LogFixture, ByteByByte) {
  LogRun run;
  std::size_t next_pause = 0;
  for (std::size_t at = 0; at < one_.log.size(); ++at) {
    run.write(std::string_view(one_.log).substr(at, 1));
    if (at + 1 == one_.ends[next_pause]) {
      run.wait(kPause);
      ++next_pause;
    }
  }
  expect_verdict(run);
}

INSTANTIATE_TEST_SUITE_P(Logs, LogFixture, testing::ValuesIn(case_names()),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(LogFixtures, AreAllThatTheIndexNames) {
  const std::string readme = read_file(std::string(BERTH_LOG_FIXTURES) + "/README.md");
  const std::vector<std::string> names = case_names();
  EXPECT_GE(names.size(), 54U);
  for (const std::string& name : names) {
    EXPECT_NE(readme.find("| " + name + " |"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace berth::core
