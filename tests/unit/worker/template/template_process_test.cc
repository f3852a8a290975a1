#include "worker/template/template_process.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "worker/sandbox/call_filter.h"
#include "worker/template/helper_limits.h"

namespace berth::worker {
namespace {

// The words of the line of /proc/PID/limits that begins with `name`, behind it.
std::string limit_line(pid_t pid, const std::string& name) {
  std::ifstream limits("/proc/" + std::to_string(pid) + "/limits");
  for (std::string line; std::getline(limits, line);) {
    if (line.rfind(name, 0) != 0) continue;
    std::istringstream words(line.substr(name.size()));
    std::string soft;
    std::string hard;
    words >> soft >> hard;
    return soft + " " + hard;
  }
  return "";
}

// The filter of system calls is the last that berth-template takes upon itself.
bool filtered(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  const std::string text(std::istreambuf_iterator<char>(status), {});
  return text.find("Seccomp:\t2") != std::string::npos;
}

TEST(TemplateProcessTest, L26_ItsLimitsStandBeforeAnythingIsSent) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need more";
  auto process = TemplateProcess::start(BERTH_TEMPLATE);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!filtered(process->pid()) && std::chrono::steady_clock::now() < deadline) {
    ASSERT_FALSE(process->ended());
    std::this_thread::yield();
  }
  EXPECT_EQ(limit_line(process->pid(), "Max cpu time"), "2 3");
  EXPECT_EQ(limit_line(process->pid(), "Max address space"), "536870912 536870912");
  EXPECT_EQ(limit_line(process->pid(), "Max core file size"), "0 0");
}

// As a helper that something keeps from limiting itself.
int status_where_limits_are_refused(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {BERTH_TEMPLATE};
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    CallFilter filter;
    constexpr unsigned int kNewLimit = 2;
    filter.decide(SYS_prlimit64, {{kNewLimit, ~0U, 0, false}}, SECCOMP_RET_ERRNO | EPERM);
    filter.decide(SYS_setrlimit, SECCOMP_RET_ERRNO | EPERM);
    if (filter.install(SECCOMP_RET_ALLOW, 0) != 0) ::_exit(1);
    ::execv(BERTH_TEMPLATE, const_cast<char* const*>(argv.data()));
    ::_exit(1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(TemplateProcessTest, L26_WithoutItsLimitsItDoesNotRun) {
  if (!CallFilter::supported()) GTEST_SKIP() << "no filters for this processor";
  if (kSanitized) GTEST_SKIP() << "sanitizers need more";
  EXPECT_EQ(status_where_limits_are_refused({"--serve", std::to_string(::getpid())}),
            HelperExit::kNoLimits);
  EXPECT_EQ(status_where_limits_are_refused({"--render", "/dev/null", "/dev/null"}),
            HelperExit::kNoLimits);
}

// Of a process that can start no thread: whether a start fails in it, and leaves no child behind.
enum Outcome : int { kNoFilter = 10, kStarted = 11, kLeftOne = 12 };

int start_without_threads() {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  CallFilter filter;
  // Its flags are in memory, where no filter sees them; the C library falls back to clone().
  filter.decide(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
  filter.decide(SYS_clone, {{0, CLONE_THREAD, CLONE_THREAD}}, SECCOMP_RET_ERRNO | EAGAIN);
  if (filter.install(SECCOMP_RET_ALLOW, 0) != 0) return kNoFilter;
  if (TemplateProcess::start(BERTH_TEMPLATE)) return kStarted;
  siginfo_t left{};
  const int found = ::waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT);
  return found != 0 && errno == ECHILD ? 0 : kLeftOne;
}

TEST(TemplateProcessTest, L4_AStartThatNoThreadCanWatchLeavesNoZombie) {
  if (!CallFilter::supported()) GTEST_SKIP() << "no filters for this processor";
  if (kSanitized) GTEST_SKIP() << "sanitizers need more";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(start_without_threads());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace berth::worker
