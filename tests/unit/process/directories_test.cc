#include "supervisor/process/directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "supervisor/process/log_file.h"
#include "supervisor/process/state_lock.h"
#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TempDir;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777U;
}

TEST(PrivateDirectory, IsMadeWithTheModeAndTakenAgain) {
  const TempDir dir;
  const mode_t before = ::umask(0077);
  const Status made = ensure_private_directory(dir.file("a/b/"), 0755);
  ::umask(before);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(mode_of(dir.file("a/b")), 0755U);
  const Status again = ensure_private_directory(dir.file("a/b"), 0700);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(mode_of(dir.file("a/b")), 0755U);
}

TEST(PrivateDirectory, ThatOthersMayWriteIsRefused) {
  const TempDir dir;
  for (const mode_t mode : {0770U, 0707U, 01777U}) {
    ASSERT_EQ(::chmod(dir.path().c_str(), mode), 0);
    const Status status = ensure_private_directory(dir.path(), 0700);
    ASSERT_FALSE(status) << mode;
    EXPECT_EQ(status.error().reason, Reason::kInvalidArgument);
    EXPECT_THAT(status.error().message, HasSubstr("chmod 0700 " + dir.path()));
  }
  const Status status = ensure_private_directory(dir.path(), 0700);
  ASSERT_FALSE(status);
  EXPECT_THAT(
      status.error().message,
      AllOf(HasSubstr("belongs to user " + std::to_string(::geteuid())), HasSubstr("mode 1777")));
}

TEST(PrivateDirectory, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  const TempDir dir;
  constexpr uid_t kSomebody = 12345;
  ASSERT_EQ(::chown(dir.path().c_str(), kSomebody, kSomebody), 0);
  const Status status = ensure_private_directory(dir.path(), 0700);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr(dir.path()), HasSubstr("belongs to user 12345"),
                    HasSubstr("mode 0700"), HasSubstr("chown 0 ")));
}

TEST(PrivateDirectory, ALinkIsNotFollowed) {
  const TempDir dir;
  ASSERT_EQ(::mkdir(dir.file("target").c_str(), 0700), 0);
  std::filesystem::create_directory_symlink(dir.file("target"), dir.file("link"));
  for (const char* name : {"link", "link/"}) {
    const Status status = ensure_private_directory(dir.file(name), 0700);
    ASSERT_FALSE(status) << name;
    EXPECT_THAT(status.error().message, HasSubstr("is a link"));
  }
}

TEST(PrivateDirectory, OnlySuchOnesHoldStateAndLogs) {
  const TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  const auto lock = StateLock::acquire(dir.path());
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, AllOf(HasSubstr("server.state_dir"), HasSubstr("mode 0777")));
  EXPECT_FALSE(std::filesystem::exists(dir.file("lock")));
  const auto log = open_log({.directory = dir.path()}, "model", {});
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().message, AllOf(HasSubstr("server.log_dir"), HasSubstr("mode 0777")));
}

}  // namespace
}  // namespace berth::process
