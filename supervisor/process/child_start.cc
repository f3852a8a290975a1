#include "supervisor/process/child_start.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/process/launch_error.h"

namespace berth::process {
namespace {

enum class Step : std::uint32_t {
  kSetpgid,
  kDeathSignal,
  kParent,
  kNoNewPrivileges,
  kCoreLimit,
  kStdio,
  kCloseRange,
  kDirectory,
  kSignals,
  kExecute,
};
constexpr std::array kStepNames = {"setpgid",
                                   "prctl(PR_SET_PDEATHSIG)",
                                   "parent check",
                                   "prctl(PR_SET_NO_NEW_PRIVS)",
                                   "setrlimit(RLIMIT_CORE)",
                                   "dup2",
                                   "close_range",
                                   "chdir",
                                   "signal mask",
                                   "execve"};
static_assert(static_cast<std::size_t>(Step::kExecute) + 1 == kStepNames.size());

// What a child that cannot go on writes into the pipe to its parent.
struct Report {
  Step step = Step::kSetpgid;
  int error = 0;
};

// The kernel's own signal set, not the C library's larger one.
using KernelSignals = std::uint64_t;
constexpr KernelSignals kAllSignals = ~KernelSignals{0};

// The child's code makes plain system calls: the C library's wrappers may lock, cache or be
// intercepted by a sanitizer's runtime, which does not know of this process.
#define BERTH_CHILD_CODE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

[[noreturn]] BERTH_CHILD_CODE void give_up(int report_fd, Step step, int error) {
  const Report report{step, error};
  ::syscall(SYS_write, report_fd, &report, sizeof report);
  while (true) ::syscall(SYS_exit_group, 127);
}

// What cannot be written is not: nothing depends on it.
BERTH_CHILD_CODE void write_file(int directory, const char* name, const char* data,
                                 std::size_t size) {
  const long file = ::syscall(SYS_openat, directory, name, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ::syscall(SYS_write, file, data, size);
  ::syscall(SYS_close, file);
}

BERTH_CHILD_CODE void write_oom_score(int value) {
  if (value == 0) return;
  std::array<char, 16> digits{};
  std::size_t at = digits.size();
  unsigned int rest =
      value < 0 ? 0U - static_cast<unsigned int>(value) : static_cast<unsigned int>(value);
  while (rest > 0) {
    digits[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  }
  if (value < 0) digits[--at] = '-';
  write_file(AT_FDCWD, "/proc/self/oom_score_adj", digits.data() + at, digits.size() - at);
}

// Where the kernel did not start this process in its cgroup. Before the program runs, so that all
// of that is in it.
BERTH_CHILD_CODE void enter_cgroup(int cgroup_fd) {
  const char self = '0';
  write_file(cgroup_fd, "cgroup.procs", &self, 1);
}

BERTH_CHILD_CODE bool close_on_exec_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
  // An old kernel, or a seccomp filter of a container.
  rlimit limit{};
  if (::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) != 0) return false;
  constexpr rlim_t kMost = 1U << 20U;
  const rlim_t end = limit.rlim_cur < kMost ? limit.rlim_cur : kMost;
  for (rlim_t fd = static_cast<rlim_t>(first); fd < end; ++fd) {
    ::syscall(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  }
  return true;
}

BERTH_CHILD_CODE bool put_in_place(int fd, int place) {
  // dup3 without O_CLOEXEC; the fds of a plan are never in their place already.
  return ::syscall(SYS_dup3, fd, place, 0) >= 0;
}

[[noreturn]] BERTH_CHILD_CODE void run_child(const ChildPlan& plan, pid_t parent, bool in_cgroup,
                                             int report_fd) {
  const auto check = [report_fd](bool done, Step step)
      __attribute__((no_sanitize("address", "thread", "undefined"))) {
    if (!done) give_up(report_fd, step, errno);
  };
  check(::syscall(SYS_setpgid, 0, 0) == 0, Step::kSetpgid);
  check(::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, Step::kDeathSignal);
  // The parent may have ended before the line above; then nobody would ever kill this child.
  if (::syscall(SYS_getppid) != parent) give_up(report_fd, Step::kParent, ESRCH);
  check(::syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, Step::kNoNewPrivileges);
  const rlimit no_core{0, 0};
  check(::syscall(SYS_prlimit64, 0, RLIMIT_CORE, &no_core, nullptr) == 0, Step::kCoreLimit);
  if (plan.cgroup_fd >= 0 && !in_cgroup) enter_cgroup(plan.cgroup_fd);
  write_oom_score(plan.oom_score_adj);
  if (plan.nice != 0) ::syscall(SYS_setpriority, PRIO_PROCESS, 0, plan.nice);

  check(put_in_place(plan.stdin_fd, 0) && put_in_place(plan.output_fd, 1) &&
            put_in_place(plan.output_fd, 2) && put_in_place(plan.notify_fd, 3),
        Step::kStdio);
  check(close_on_exec_from(4), Step::kCloseRange);
  check(::syscall(SYS_chdir, plan.directory) == 0, Step::kDirectory);

  // Ignored signals would stay ignored over execve (CLONE_CLEAR_SIGHAND leaves them, too), and
  // handlers are the parent's code. All zeros is SIG_DFL; the two that cannot be set say so.
  const std::array<std::uint64_t, 8> default_action{};
  constexpr int kLastSignal = 64;
  for (int signal = 1; signal <= kLastSignal; ++signal) {
    ::syscall(SYS_rt_sigaction, signal, default_action.data(), nullptr, sizeof(KernelSignals));
  }
  const KernelSignals none = 0;
  check(::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none) == 0,
        Step::kSignals);
  ::syscall(SYS_execve, plan.program, plan.argv, plan.environment);
  give_up(report_fd, Step::kExecute, errno);
}

// As fork(), but without its handlers: those of gRPC and of the C library would run in a child
// that has only this thread. All signals must be blocked.
BERTH_CHILD_CODE long fork_with_pidfd(const ChildPlan& plan, int& pidfd, bool& in_cgroup) {
  in_cgroup = plan.use_clone3 && plan.cgroup_fd >= 0;
  if (plan.use_clone3) {
    clone_args arguments{};
    arguments.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
    arguments.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (in_cgroup) {
      clone_args into = arguments;
      into.flags |= CLONE_INTO_CGROUP;
      into.cgroup = static_cast<unsigned int>(plan.cgroup_fd);
      const long pid = ::syscall(SYS_clone3, &into, sizeof into);
      if (pid >= 0) return pid;
      in_cgroup = false;
    }
    const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid >= 0) return pid;
    // Not there (old kernel), not known in full, or refused by a seccomp filter.
    if (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != E2BIG) return pid;
  }
  return ::syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, nullptr, &pidfd, nullptr, nullptr);
}

Error describe(const ChildPlan& plan, const Report& report) {
  std::string step = kStepNames.at(static_cast<std::size_t>(report.step));
  if (report.step == Step::kExecute) step += std::string(" ") + plan.program;
  if (report.step == Step::kDirectory) step += std::string(" ") + plan.directory;
  return launch_error(step, report.error);
}

struct Waited {
  bool executed = false;
  std::optional<Report> report;
};

// The pipe ends without a word when the program is executed, as its other end is CLOEXEC.
Waited wait_for_exec(int report_fd, std::chrono::milliseconds exec_wait) {
  const auto deadline = std::chrono::steady_clock::now() + exec_wait;
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {};
    pollfd readable{report_fd, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    Report report;
    const ssize_t got = ::read(report_fd, &report, sizeof report);
    if (got == 0) return {true, std::nullopt};
    if (got == static_cast<ssize_t>(sizeof report)) return {false, report};
    if (got < 0 && errno == EINTR) continue;
    return {};
  }
}

}  // namespace

Result<StartedChild> start_child(const ChildPlan& plan, std::chrono::milliseconds exec_wait) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(launch_error("pipe", errno));
  const UniqueFd report_read(ends[0]);
  UniqueFd report_write(ends[1]);
  // Out of the way of fds 0 to 3.
  constexpr int kFirstFree = 10;
  UniqueFd report_child(::fcntl(report_write.get(), F_DUPFD_CLOEXEC, kFirstFree));
  if (!report_child) return fail(launch_error("fcntl(F_DUPFD)", errno));
  report_write.reset();

  const pid_t parent = ::getpid();
  KernelSignals before = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kAllSignals, &before, sizeof before);
  int pidfd = -1;
  bool in_cgroup = false;
  const long pid = fork_with_pidfd(plan, pidfd, in_cgroup);
  if (pid == 0) run_child(plan, parent, in_cgroup, report_child.get());
  const int fork_error = errno;
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  if (pid < 0) return fail(launch_error("clone", fork_error));

  StartedChild child{static_cast<pid_t>(pid), UniqueFd(pidfd), in_cgroup};
  report_child.reset();
  const Waited waited = wait_for_exec(report_read.get(), exec_wait);
  if (waited.executed) return child;
  discard_child(child);
  if (!waited.report) return fail(slow_launch_error(plan.program, exec_wait));
  return fail(describe(plan, *waited.report));
}

void discard_child(const StartedChild& child) {
  ::kill(child.pid, SIGKILL);
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  constexpr int kMostMs = 1000;
  while (::poll(&ended, 1, kMostMs) < 0 && errno == EINTR) {
  }
  siginfo_t info{};
  ::waitid(P_PIDFD, static_cast<id_t>(child.pidfd.get()), &info, WEXITED | WNOHANG);
}

}  // namespace berth::process
