#include "supervisor/process/own_cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "tests/unit/process/temp_dir.h"

namespace berth::process {
namespace {

using testing::append;
using ::testing::HasSubstr;
using testing::TempDir;

constexpr const char* kUnified =
    "25 30 0:23 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
    "29 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr const char* kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

std::string found(const char* membership, const char* mounts) {
  const auto directory = cgroup_directory(membership, mounts);
  return directory ? *directory : "error: " + directory.error().message;
}

TEST(OwnCgroup, L3_IsFoundInBothLayouts) {
  EXPECT_EQ(found("0::/system.slice/berthd.service\n", kUnified),
            "/sys/fs/cgroup/system.slice/berthd.service");
  EXPECT_EQ(found("4:memory:/berth\n1:name=systemd:/x\n0::/system.slice/berthd.service\n", kHybrid),
            "/sys/fs/cgroup/unified/system.slice/berthd.service");
  EXPECT_EQ(found("0::/\n", kUnified), "/sys/fs/cgroup");
}

TEST(OwnCgroup, L3_OnlyAPartOfTheHierarchyMayBeMounted) {
  const char* const part = "29 25 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(found("0::/box/berthd.service\n", part), "/sys/fs/cgroup/berthd.service");
  EXPECT_EQ(found("0::/box\n", part), "/sys/fs/cgroup");
  EXPECT_THAT(found("0::/boxes/berthd.service\n", part), HasSubstr("is not mounted"));
  EXPECT_EQ(found("0::/a\n", R"(29 25 0:26 / /mnt/a\040b\134c rw - cgroup2 cgroup2 rw)"),
            R"(/mnt/a b\c/a)");
}

TEST(OwnCgroup, L3_WhereThereIsNoneThatIsSaid) {
  EXPECT_THAT(found("4:memory:/berth\n", kHybrid), HasSubstr("no cgroup of version 2"));
  EXPECT_THAT(found("0::/a\n", ""), HasSubstr("is not mounted"));
  EXPECT_THAT(found("0::/../other.service\n", kUnified), HasSubstr("outside"));
  EXPECT_THAT(found("0::/..\n", kUnified), HasSubstr("outside"));
  EXPECT_THAT(found("0::relative\n", kUnified), HasSubstr("no cgroup"));
  EXPECT_THAT(found("0::/a\n", "29 25 0:26 / - cgroup2\n- - - - - -\n"), HasSubstr("not mounted"));
}

// Sets a variable for the time of a test.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* const before = ::getenv(name)) before_ = before;
    set(value);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { set(before_); }

 private:
  void set(const std::optional<std::string>& value) const {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

TEST(OwnCgroup, L3_OnlyAServicesOwnProcessDividesItsCgroup) {
  {
    const Variable invocation("INVOCATION_ID", std::nullopt);
    EXPECT_FALSE(runs_as_service());
    const auto own = delegated_cgroup();
    ASSERT_FALSE(own);
    EXPECT_THAT(own.error().message, HasSubstr("does not run as a service"));
  }
  const Variable invocation("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
  {
    const Variable executed("SYSTEMD_EXEC_PID", std::nullopt);
    EXPECT_TRUE(runs_as_service());
  }
  {
    const Variable executed("SYSTEMD_EXEC_PID", std::to_string(::getpid()));
    EXPECT_TRUE(runs_as_service());
  }
  // A program that was started by hand below a service's inherits both.
  const Variable executed("SYSTEMD_EXEC_PID", "1");
  EXPECT_FALSE(runs_as_service());
}

// Plain files in the place of a cgroup.
class DelegatedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::mkdir(cgroup_.c_str(), S_IRWXU), 0);
    append(cgroup_ + "/cgroup.procs", std::to_string(::getpid()) + "\n");
    append(cgroup_ + "/cgroup.subtree_control", "");
  }
  [[nodiscard]] std::string problem() const {
    const Status given = check_delegated(cgroup_);
    return given ? "" : given.error().message;
  }

  TempDir dir_;
  const std::string cgroup_ = dir_.file("berthd.service");
};

TEST_F(DelegatedTest, L3_WritableButNotGivenIsNotEnough) {
  // The parent is ours as well, as in a user's own manager or for root.
  EXPECT_THAT(problem(), HasSubstr("is not delegated"));
  if (::setxattr(cgroup_.c_str(), "user.delegate", "1", 1, 0) != 0 &&
      ::setxattr(cgroup_.c_str(), "trusted.delegate", "1", 1, 0) != 0) {
    GTEST_SKIP() << "this file system takes no attributes";
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(DelegatedTest, L3_AnotherOwnersParentSaysThatItWasGiven) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(dir_.path().c_str(), 65534, 65534), 0);
  EXPECT_EQ(problem(), "");
  append(cgroup_ + "/cgroup.procs", "1\n");
  EXPECT_THAT(problem(), HasSubstr("process 1 is in"));
}

TEST_F(DelegatedTest, L3_WhatIsMissingIsNamed) {
  std::filesystem::remove(cgroup_ + "/cgroup.subtree_control");
  EXPECT_THAT(problem(), HasSubstr("cgroup.subtree_control cannot be written to"));
}

}  // namespace
}  // namespace berth::process
