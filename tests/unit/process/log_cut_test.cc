#include "supervisor/process/log_cut.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "common/fd.h"
#include "tests/unit/process/file_size_limit.h"
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

bool is_tmpfs(const std::string& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// A disk, where most file systems can take out a part of a file, and a tmpfs, which cannot.
class LogCutTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() != "/tmp" && !is_tmpfs(GetParam())) GTEST_SKIP() << "no tmpfs there";
  }
  TempDir dir_{std::filesystem::exists(GetParam()) ? GetParam() : "/tmp"};
  std::string path_ = dir_.file("log");
};

INSTANTIATE_TEST_SUITE_P(FileSystems, LogCutTest, ::testing::Values("/tmp", "/dev/shm"),
                         [](const auto& test) {
                           return std::string(test.param == "/tmp" ? "Disk" : "Tmpfs");
                         });

class LogFloodTest : public ::testing::Test {
 protected:
  TempDir dir_;
  std::string path_ = dir_.file("log");
};

TEST_P(LogCutTest, L10_ALiveFileIsCutToItsLastPartAtALine) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  const auto cut = trim_live(path_, 70'000, 30'000);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_TRUE(cut->cut);
  EXPECT_EQ(cut->size_before, text.size());
  const std::string after = slurp(path_);
  EXPECT_THAT(after, StartsWith("== berth cut "));
  const std::string kept = after.substr(after.find('\n') + 1);
  EXPECT_THAT(kept, StartsWith("line "));
  EXPECT_THAT(text, EndsWith(kept));
  EXPECT_LE(kept.size(), 30'000U);
  EXPECT_GE(kept.size(), 25'000U) << "less than a block is given away";
}

TEST_P(LogCutTest, ASmallFileStays) {
  append(path_, numbered_lines(0, 100));
  const std::string before = slurp(path_);
  const auto cut = trim_live(path_, 20'000, 5000);
  ASSERT_TRUE(cut);
  EXPECT_FALSE(cut->cut);
  EXPECT_EQ(slurp(path_), before);
}

TEST_P(LogCutTest, MissingFilesLinksAndPipesAreErrors) {
  EXPECT_EQ(trim_live(path_).error().reason, Reason::kNotFound);
  append(dir_.file("target"), std::string(100, 'x'));
  std::filesystem::create_symlink(dir_.file("target"), path_);
  EXPECT_EQ(trim_live(path_, 1, 1).error().reason, Reason::kInternal);
  ASSERT_EQ(::mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(trim_live(dir_.file("pipe"), 1, 1));
}

TEST_P(LogCutTest, TheWriterGoesOnAtTheNewEnd) {
  const UniqueFd writer(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string text = numbered_lines(0, 10'000);
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_TRUE(trim_live(path_, 20'000, 5000));
  ASSERT_EQ(::write(writer.get(), "after\n", 6), 6);
  EXPECT_THAT(slurp(path_), EndsWith("line 9999\nafter\n"));
  EXPECT_EQ(slurp(path_).find('\0'), std::string::npos);
}

TEST_P(LogCutTest, ReadersFindTheirPlaceAgain) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::uint64_t place = text.find("line 9990\n");
  EXPECT_EQ(log_place(reader.get(), place), place);
  ASSERT_TRUE(trim_live(path_, 20'000, 5000));
  const std::string after = slurp(path_);
  EXPECT_EQ(log_place(reader.get(), place), after.find("line 9990\n"));
  EXPECT_EQ(log_place(reader.get(), text.size()), after.size());
  EXPECT_EQ(log_offset(reader.get(), after.find("line 9990\n")), place);
  EXPECT_EQ(log_offset(reader.get(), after.size()), text.size());
  // What a slow reader had not read yet is gone: it goes on behind the mark.
  EXPECT_EQ(log_place(reader.get(), text.size() / 2), after.find('\n') + 1);
  // Emptied by somebody else.
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(log_place(reader.get(), place), 0U);
}

TEST_P(LogCutTest, L10_AnOffsetStaysOverManyCuts) {
  std::string all;
  for (int i = 0; i < 10; ++i) {
    const std::string text = numbered_lines(10'000 * i, 10'000 * (i + 1));
    append(path_, text);
    all += text;
    ASSERT_TRUE(trim_live(path_, 20'000, 5000)->cut);
    const std::string after = slurp(path_);
    EXPECT_THAT(after, StartsWith("== berth cut "));
    EXPECT_EQ(after.find("== berth cut", 1), std::string::npos);
    const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    const std::string line = "line " + std::to_string((10'000 * (i + 1)) - 10) + "\n";
    EXPECT_EQ(log_place(reader.get(), all.find(line)), after.find(line));
  }
}

// The file has grown past the reader's place again: only the mark says that it was cut.
TEST_P(LogCutTest, L10_AReaderBehindTheCutGoesOnWhatEverTheSize) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::uint64_t behind = text.find("line 1000\n");
  ASSERT_TRUE(trim_live(path_, 20'000, 5000)->cut);
  const std::string more = numbered_lines(10'000, 30'000);
  append(path_, more);
  const std::string after = slurp(path_);
  ASSERT_GT(after.size(), text.size());

  auto part = read_log_part(reader.get(), text.size(), 11);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, "line 10000\n");
  EXPECT_EQ(part->offset, text.size());
  EXPECT_EQ(part->end, text.size() + more.size());
  part = read_log_part(reader.get(), behind, 5);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, "line ");
  EXPECT_GT(part->offset, behind) << "and it is told that bytes are missing";
  EXPECT_EQ(text.substr(part->offset, 9), after.substr(after.find('\n') + 1, 9));
}

TEST_P(LogCutTest, L10_ALineWithoutAnEndIsCutToo) {
  append(path_, std::string(300'000, 'x'));
  ASSERT_TRUE(trim_live(path_, 200'000, 90'000)->cut);
  append(path_, "\nend\n");
  const std::string after = slurp(path_);
  EXPECT_LT(after.size(), 91'000U);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(log_place(reader.get(), 300'001), after.find("end\n"));
}

TEST_P(LogCutTest, L10_ACutThatFailsClaimsNothing) {
  append(path_, numbered_lines(0, 10'000));
  ASSERT_TRUE(trim_live(path_, 70'000, 30'000)->cut);
  append(path_, numbered_lines(10'000, 20'000));
  const std::string before = slurp(path_);
  const std::string mark = before.substr(0, before.find('\n') + 1);
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::uint64_t end = log_end(reader.get());
  {
    const testing::FileSizeLimit limit(10'000);
    EXPECT_FALSE(trim_live(path_, 70'000, 30'000));
  }
  const std::string after = slurp(path_);
  EXPECT_EQ(after.size(), before.size());
  EXPECT_THAT(after, StartsWith(mark)) << "as it was";
  EXPECT_EQ(log_end(reader.get()), end);
  EXPECT_THAT(after, EndsWith(before.substr(before.size() - 30'000)));
  const auto part = read_log_part(reader.get(), end - 11, 11);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, "line 19999\n");

  ASSERT_TRUE(trim_live(path_, 70'000, 30'000)->cut) << "the next time";
  EXPECT_EQ(log_end(reader.get()), end);
}

// The first line that is kept carries the mark before a part of the file is taken out.
TEST_P(LogCutTest, L10_ACutThatFailsHalfwayLosesNoLine) {
  const std::string text = numbered_lines(0, 10'000);
  append(path_, text);
  constexpr std::size_t kBlock = 4096;
  const std::size_t first_block = (text.size() - 30'000 + kBlock - 1) / kBlock * kBlock;
  {
    const testing::FileSizeLimit limit(first_block + 10);
    static_cast<void>(trim_live(path_, 70'000, 30'000));
  }
  EXPECT_THAT(slurp(path_), EndsWith(text.substr(first_block)));
}

TEST_P(LogCutTest, ASmallFileNeedsNotBeWritable) {
  append(path_, numbered_lines(0, 100));
  ASSERT_EQ(::chmod(path_.c_str(), S_IRUSR), 0);
  if (::access(path_.c_str(), W_OK) == 0) GTEST_SKIP() << "root may write everywhere";
  EXPECT_TRUE(trim_live(path_));
  EXPECT_EQ(trim_live(path_, 1, 1).error().reason, Reason::kInternal);
}

// Where the file system can take out a part of a file, no byte of a writer that never pauses is
// lost; where it cannot (a tmpfs), whole writes may be.
TEST_F(LogFloodTest, L10_NoLineIsLostWhereAPartCanBeTakenOut) {
  const UniqueFd probe(::open(dir_.file("probe").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::ftruncate(probe.get(), 1 << 20), 0);
  if (::fallocate(probe.get(), FALLOC_FL_COLLAPSE_RANGE, 0, 1 << 16) != 0) {
    GTEST_SKIP() << "not on this file system";
  }
  std::atomic<bool> stop{false};
  const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  std::thread writer([&] {
    for (int i = 0; !stop.load(); ++i) {
      const std::string text = "line " + std::to_string(i) + "\n";
      if (::write(file.get(), text.data(), text.size()) < 0) return;
    }
  });
  int cuts = 0;
  int next = -1;  // whose line comes next
  std::uint64_t offset = 0;
  while (cuts < 5) {
    const auto cut = trim_live(file.get(), 400'000, 100'000);
    ASSERT_TRUE(cut);
    if (cut->cut) ++cuts;
    const auto part = read_log_part(file.get(), offset, 1 << 20);
    ASSERT_TRUE(part);
    if (part->offset != offset) next = -1;
    const std::size_t whole = part->bytes.rfind('\n') + 1;
    std::istringstream lines(part->bytes.substr(0, whole));
    int number = 0;
    for (std::string word; lines >> word >> number; ++next) {
      ASSERT_EQ(word, "line");
      if (next < 0) next = number;
      ASSERT_EQ(number, next);
    }
    offset = part->offset + whole;
  }
  stop.store(true);
  writer.join();
}

// A writer that never pauses: the file is cut all the same, and what is left is whole lines.
TEST_F(LogFloodTest, AFloodIsCut) {
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
