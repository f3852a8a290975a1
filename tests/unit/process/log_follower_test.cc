#include "supervisor/process/log_follower.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_file.h"
#include "tests/unit/process/loop.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using testing::TempDir;

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollower open(std::optional<std::uint32_t> lines, bool follow) {
    auto follower = LogFollower::open(path_, lines, follow);
    if (!follower) throw std::runtime_error(follower.error().message);
    return std::move(*follower);
  }
  static std::string read_all(LogFollower& follower, std::size_t most = 64UL * 1024UL) {
    std::string text;
    while (true) {
      const auto part = follower.read(most);
      EXPECT_TRUE(part) << part.error().message;
      if (!part || part->empty()) return text;
      EXPECT_LE(part->size(), most);
      text += *part;
    }
  }
  static bool wakes(const LogFollower& follower) {
    pollfd readable{follower.wait_fd(), POLLIN, 0};
    const std::chrono::milliseconds most = testing::kGenerous;
    return ::poll(&readable, 1, static_cast<int>(most.count())) == 1;
  }
  static bool quiet(const LogFollower& follower) {
    pollfd readable{follower.wait_fd(), POLLIN, 0};
    return ::poll(&readable, 1, 0) == 0;
  }

  TempDir dir_;
  std::string path_ = dir_.file("m.log");
};

TEST_F(LogFollowerTest, FromTheBeginInChunks) {
  append(path_, "one\ntwo\nthree");
  LogFollower follower = open(std::nullopt, false);
  EXPECT_LT(follower.wait_fd(), 0);
  EXPECT_EQ(read_all(follower, 4), "one\ntwo\nthree");
}

TEST_F(LogFollowerTest, TheLastLines) {
  append(path_, "one\ntwo\nthree\n");
  LogFollower two = open(2, false);
  EXPECT_EQ(read_all(two), "two\nthree\n");
  LogFollower none = open(0, false);
  EXPECT_EQ(read_all(none), "");
  LogFollower more = open(100, false);
  EXPECT_EQ(read_all(more), "one\ntwo\nthree\n");
  append(path_, "half");
  LogFollower half = open(1, false);
  EXPECT_EQ(read_all(half), "half");
}

TEST_F(LogFollowerTest, TheLastLinesOfALargeFile) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "line " + std::to_string(i) + "\n";
  append(path_, text);
  LogFollower follower = open(20'000, false);
  const std::string tail = read_all(follower);
  EXPECT_EQ(tail.substr(0, 11), "line 30000\n");
  EXPECT_EQ(tail, text.substr(text.size() - tail.size()));
}

TEST_F(LogFollowerTest, MissingFileWithoutFollowIsNotFound) {
  const auto follower = LogFollower::open(path_, std::nullopt, false);
  ASSERT_FALSE(follower);
  EXPECT_EQ(follower.error().reason, Reason::kNotFound);
}

TEST_F(LogFollowerTest, WakesForWhatIsAppended) {
  append(path_, "old\n");
  LogFollower follower = open(0, true);
  ASSERT_GE(follower.wait_fd(), 0);
  EXPECT_EQ(read_all(follower), "");
  EXPECT_TRUE(quiet(follower));
  append(path_, "new\n");
  ASSERT_TRUE(wakes(follower));
  EXPECT_EQ(read_all(follower), "new\n");
  EXPECT_TRUE(quiet(follower));
}

TEST_F(LogFollowerTest, WaitsForAFileThatDoesNotExistYet) {
  LogFollower follower = open(10, true);
  EXPECT_EQ(read_all(follower), "");
  append(path_, "first\n");
  ASSERT_TRUE(wakes(follower));
  EXPECT_EQ(read_all(follower), "first\n");
}

TEST_F(LogFollowerTest, FollowsOverRotations) {
  const LogPolicy policy{dir_.path(), 3, 10};
  append(path_, "before rotation\n");
  LogFollower follower = open(std::nullopt, true);
  EXPECT_EQ(read_all(follower), "before rotation\n");
  append(path_, "last words\n");
  const auto log = open_log(policy, "m", {"i", WallTime{}, {}});
  ASSERT_TRUE(log) << log.error().message;
  append(path_, "after\n");
  ASSERT_TRUE(wakes(follower));
  const std::string text = read_all(follower);
  EXPECT_EQ(text.substr(0, 20), "last words\n== berth ");
  EXPECT_EQ(text.substr(text.size() - 7), "\nafter\n");
}

TEST_F(LogFollowerTest, FollowsOverACutWithoutRepeating) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
  append(path_, text);
  LogFollower follower = open(std::nullopt, true);
  EXPECT_EQ(read_all(follower), text);
  append(path_, "unread\n");
  ASSERT_TRUE(trim_live(path_, 1000, 400)->cut);
  append(path_, "after\n");
  EXPECT_EQ(read_all(follower), "unread\nafter\n");
}

TEST_F(LogFollowerTest, AnEmptiedFileBeginsAnew) {
  append(path_, "old text\n");
  LogFollower follower = open(std::nullopt, true);
  EXPECT_EQ(read_all(follower), "old text\n");
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(read_all(follower), "");
  append(path_, "new\n");
  EXPECT_EQ(read_all(follower), "new\n");
}

TEST_F(LogFollowerTest, ADeletedFileMayComeBack) {
  append(path_, "a\n");
  LogFollower follower = open(std::nullopt, true);
  EXPECT_EQ(read_all(follower), "a\n");
  std::filesystem::remove(path_);
  EXPECT_EQ(read_all(follower), "");
  append(path_, "b\n");
  EXPECT_EQ(read_all(follower), "b\n");
}

TEST_F(LogFollowerTest, L11_LinksAreNotFollowed) {
  append(dir_.file("target"), "secret\n");
  std::filesystem::create_symlink(dir_.file("target"), path_);
  EXPECT_FALSE(LogFollower::open(path_, std::nullopt, false));
  EXPECT_FALSE(LogFollower::open(path_, std::nullopt, true));
}

// Every byte once and in order, while another thread writes and rotates.
TEST_F(LogFollowerTest, NothingIsLostOrRepeatedUnderRotation) {
  constexpr int kLines = 3000;
  append(path_, "");
  LogFollower follower = open(std::nullopt, true);
  std::thread writer([this] {
    for (int i = 0; i < kLines; ++i) {
      append(path_, "line " + std::to_string(i) + "\n");
      // A follower may miss a whole file between two rotations, so these are far apart.
      if (i != kLines / 2) continue;
      ASSERT_EQ(::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
    }
  });
  std::string text;
  const std::string last = "line " + std::to_string(kLines - 1) + "\n";
  const bool complete = testing::poll_until([&] {
    text += read_all(follower);
    return text.ends_with(last);
  });
  writer.join();
  ASSERT_TRUE(complete);
  std::string expected;
  for (int i = 0; i < kLines; ++i) expected += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(text, expected);
}

TEST_F(LogFollowerTest, L10_TheLastLineIsFoundWhileTheFileIsCut) {
  append(path_, "line 0\n");
  std::atomic<int> cuts{0};
  std::thread writer([&] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i) + "\n";
    constexpr int kCuts = 100;
    while (cuts < kCuts) {
      append(path_, text);
      const auto cut = trim_live(path_, 100'000, 30'000);
      if (!cut || cut->cut) ++cuts;
    }
  });
  int before = 0;
  int nothing = 0;
  do {
    before = cuts;
    LogFollower follower = open(1, false);
    const auto text = follower.read();
    if (!text || text->empty()) ++nothing;
  } while (before < 100);
  writer.join();
  EXPECT_EQ(nothing, 0);
}

}  // namespace
}  // namespace berth::process
