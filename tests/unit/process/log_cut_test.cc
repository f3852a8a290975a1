#include "supervisor/process/log_cut.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "common/fd.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::EndsWith;
using testing::slurp;
using ::testing::StartsWith;
using testing::TempDir;

std::string numbered_lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

class LogCutTest : public ::testing::Test {
 protected:
  TempDir dir_;
  std::string path_ = dir_.file("log");
};

TEST_F(LogCutTest, L10_ALiveFileIsCutToItsLastPartAtALine) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  const auto cut = trim_live(path_, 20'000, 5000);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_TRUE(cut->cut);
  EXPECT_EQ(cut->size_before, text.size());
  const std::string after = slurp(path_);
  EXPECT_THAT(after, StartsWith("== berth cut "));
  const std::string kept = after.substr(after.find('\n') + 1);
  EXPECT_THAT(kept, StartsWith("line "));
  EXPECT_THAT(text, EndsWith(kept));
  EXPECT_LE(kept.size(), 5000U);
  EXPECT_GE(kept.size(), 4900U);
}

TEST_F(LogCutTest, ASmallFileStays) {
  append(path_, numbered_lines(0, 100));
  const std::string before = slurp(path_);
  const auto cut = trim_live(path_, 20'000, 5000);
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->cut);
  EXPECT_EQ(slurp(path_), before);
}

TEST_F(LogCutTest, MissingFilesLinksAndPipesAreErrors) {
  EXPECT_EQ(trim_live(path_).error().reason, Reason::kNotFound);
  append(dir_.file("target"), std::string(100, 'x'));
  std::filesystem::create_symlink(dir_.file("target"), path_);
  EXPECT_EQ(trim_live(path_, 1, 1).error().reason, Reason::kInternal);
  ASSERT_EQ(::mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(trim_live(dir_.file("pipe"), 1, 1));
}

TEST_F(LogCutTest, TheWriterGoesOnAtTheNewEnd) {
  const UniqueFd writer(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string text = numbered_lines(0, 10'000);
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_TRUE(trim_live(path_, 20'000, 5000));
  ASSERT_EQ(::write(writer.get(), "after\n", 6), 6);
  EXPECT_THAT(slurp(path_), EndsWith("line 9999\nafter\n"));
  EXPECT_EQ(slurp(path_).find('\0'), std::string::npos);
}

TEST_F(LogCutTest, ReadersFindTheirPlaceAgain) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::uint64_t place = text.find("line 9990\n");
  EXPECT_EQ(place_after_cut(reader.get(), place), place);
  ASSERT_TRUE(trim_live(path_, 20'000, 5000));
  const std::string after = slurp(path_);
  EXPECT_EQ(place_after_cut(reader.get(), place), after.find("line 9990\n"));
  EXPECT_EQ(place_after_cut(reader.get(), text.size()), after.size());
  // What a slow reader had not read yet is gone: it goes on behind the mark.
  EXPECT_EQ(place_after_cut(reader.get(), text.size() / 2), after.find('\n') + 1);
  // Emptied by somebody else.
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(place_after_cut(reader.get(), place), 0U);
}

TEST_F(LogCutTest, CutTwice) {
  append(path_, numbered_lines(0, 10'000));
  ASSERT_TRUE(trim_live(path_, 20'000, 5000)->cut);
  append(path_, numbered_lines(10'000, 20'000));
  const std::string before = slurp(path_);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(trim_live(path_, 20'000, 5000)->cut);
  const std::string after = slurp(path_);
  EXPECT_THAT(after, StartsWith("== berth cut "));
  EXPECT_EQ(after.find("== berth cut", 1), std::string::npos);
  EXPECT_EQ(place_after_cut(reader.get(), before.find("line 19990\n")), after.find("line 19990\n"));
}

// A writer that never pauses: the file is cut all the same, and what is left is whole lines.
TEST_F(LogCutTest, AFloodIsCut) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> written{0};
  std::thread writer([&] {
    const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string text = "x" + std::string(62, '-') + "\n";
    while (!stop.load()) {
      if (::write(file.get(), text.data(), text.size()) < 0) return;
      written += text.size();
    }
  });
  int cuts = 0;
  while (cuts < 5) {
    const auto cut = trim_live(path_, 2'000'000, 100'000);
    if (!cut) {
      ASSERT_EQ(cut.error().reason, Reason::kNotFound);
    } else if (cut->cut) {
      ++cuts;
    }
  }
  stop.store(true);
  writer.join();
  EXPECT_LT(std::filesystem::file_size(path_), written.load());
  std::string text = slurp(path_);
  text.erase(0, text.find('\n') + 1);
  EXPECT_EQ(text.size() % 64, 0U);
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

}  // namespace
}  // namespace berth::process
