#include "supervisor/process/state_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::HasSubstr;
using testing::slurp;
using testing::TempDir;

TEST(StateLock, MakesThePrivateDirectoryAndHoldsThePid) {
  const TempDir dir;
  const std::string state = dir.file("a/state");
  const auto lock = StateLock::acquire(state);
  ASSERT_TRUE(lock) << lock.error().message;
  struct stat info {};
  ASSERT_EQ(::stat(state.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(slurp(state + "/lock"), std::to_string(::getpid()) + "\n");
}

TEST(StateLock, SecondDaemonIsRefusedAndTheFirstOneNamed) {
  const TempDir dir;
  const auto first = StateLock::acquire(dir.path());
  ASSERT_TRUE(first);
  // flock() is by open file, so that this process stands for another one.
  const auto second = StateLock::acquire(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr(dir.path()));
  EXPECT_THAT(second.error().message, HasSubstr("pid " + std::to_string(::getpid())));
}

TEST(StateLock, IsFreeAgainAfterItsEnd) {
  const TempDir dir;
  append(dir.file("lock"), "123456789012\nold text");
  { ASSERT_TRUE(StateLock::acquire(dir.path())); }
  ASSERT_TRUE(StateLock::acquire(dir.path()));
  EXPECT_EQ(slurp(dir.file("lock")), std::to_string(::getpid()) + "\n");
}

TEST(StateLock, AFileInTheWayIsAClearError) {
  const TempDir dir;
  append(dir.file("state"), "x");
  const auto lock = StateLock::acquire(dir.file("state"));
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().reason, Reason::kInvalidArgument);
  EXPECT_THAT(lock.error().message, HasSubstr("server.state_dir"));
  EXPECT_THAT(lock.error().message, HasSubstr("is a file"));
}

TEST(StateLock, LinksAreNotFollowed) {
  const TempDir dir;
  append(dir.file("target"), "precious");
  std::filesystem::create_symlink(dir.file("target"), dir.file("lock"));
  EXPECT_FALSE(StateLock::acquire(dir.path()));
  EXPECT_EQ(slurp(dir.file("target")), "precious");
}

}  // namespace
}  // namespace berth::process
