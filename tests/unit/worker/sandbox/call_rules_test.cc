#include "worker/sandbox/call_rules.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace berth::worker {
namespace {

constexpr int kNoFilter = 1000;

// Runs `attempt` in a child under the filter: 0 where it returned 0, else its errno.
int outcome(pid_t supervisor, long (*attempt)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (forbid_calls(supervisor) != 0) ::_exit(255);
    ::_exit(attempt() == 0 ? 0 : errno);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 255 ? kNoFilter : WEXITSTATUS(status);
}

long set_own_limit() {
  rlimit limit{};
  if (::prlimit(0, RLIMIT_CPU, nullptr, &limit) != 0) return -1;
  return ::prlimit(0, RLIMIT_CPU, &limit, nullptr);
}

// Also where it is the number of the caller itself: a filter cannot tell whose a number is later.
long read_limit_by_number() {
  rlimit limit{};
  return ::prlimit(::getpid(), RLIMIT_CPU, nullptr, &limit);
}

class CallRules : public testing::TestWithParam<pid_t> {
 protected:
  void SetUp() override {
    if (!can_forbid_calls()) GTEST_SKIP() << "this kernel has no seccomp";
  }
};

TEST_P(CallRules, L26_OnlyItsOwnLimits) {
  EXPECT_EQ(outcome(GetParam(), &set_own_limit), 0);
  EXPECT_EQ(outcome(GetParam(), &read_limit_by_number), EPERM);
}

TEST_P(CallRules, L4_NoWayOutOfTheProcessGroup) {
  EXPECT_EQ(outcome(GetParam(), [] { return long{::setsid() < 0}; }), EPERM);
  EXPECT_EQ(outcome(GetParam(), [] { return long{::setpgid(0, 0)}; }), EPERM);
}

TEST_P(CallRules, L4_NoDeathSignalButSigkillAndNoSubreaper) {
  EXPECT_EQ(outcome(GetParam(), [] { return long{::prctl(PR_SET_PDEATHSIG, SIGKILL)}; }), 0);
  EXPECT_EQ(outcome(GetParam(), [] { return long{::prctl(PR_SET_PDEATHSIG, 0)}; }), EPERM);
  EXPECT_EQ(outcome(GetParam(), [] { return long{::prctl(PR_SET_PDEATHSIG, SIGTERM)}; }), EPERM);
  // The kernel looks at all of the number: nothing but SIGKILL itself is asked for by this.
  EXPECT_EQ(
      outcome(GetParam(), [] { return long{::prctl(PR_SET_PDEATHSIG, (1UL << 32U) | SIGKILL)}; }),
      EINVAL);
  EXPECT_EQ(outcome(GetParam(), [] { return long{::prctl(PR_SET_CHILD_SUBREAPER, 1)}; }), EPERM);
}

// 0: its supervisor is of another namespace of processes.
INSTANTIATE_TEST_SUITE_P(Supervisors, CallRules, testing::Values(0, ::getppid()));

}  // namespace
}  // namespace berth::worker
