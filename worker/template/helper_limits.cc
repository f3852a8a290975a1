#include "worker/template/helper_limits.h"

#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <new>
#include <string_view>

#include "worker/sandbox/call_filter.h"

namespace berth::worker {
namespace {

// Standard error is closed where a worker asks, which knows the status.
[[noreturn]] void exit_with(int status, std::string_view why) {
  [[maybe_unused]] const auto size = ::write(STDERR_FILENO, why.data(), why.size());
  ::_exit(status);
}

[[noreturn]] void exit_without_memory() {
  exit_with(HelperExit::kMemory, "berth-template: the template needs too much memory\n");
}

// The address of main()'s frame: faults in the stack's range below it are those of a full stack.
const char* stack_top = nullptr;

// On a stack of its own: the other one may be full.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  const auto* const address = static_cast<const char*>(info->si_addr);
  constexpr std::size_t kSlack = std::size_t{4} << 20U;
  if (address < stack_top && address + HelperLimits::kStack + kSlack > stack_top) {
    exit_with(HelperExit::kStack, "berth-template: the template calls itself too deeply\n");
  }
  std::signal(signal, SIG_DFL);  // the instruction is repeated, and ends the process as it should
}

// Once more is tried for than `soft`, there is a signal or an error; `hard` can never be raised.
void limit(__rlimit_resource_t resource, rlim_t soft, rlim_t hard) {
  rlimit now{};
  bool done = ::getrlimit(resource, &now) == 0;
  const rlimit wanted{std::min(soft, now.rlim_max), std::min(hard, now.rlim_max)};
  done = done && ::setrlimit(resource, &wanted) == 0;
  if (!done) exit_with(HelperExit::kNoLimits, "berth-template: setrlimit() is refused\n");
}

void limit(__rlimit_resource_t resource, rlim_t value) {
  limit(resource, value, value);
}

void catch_full_stack() {
  static std::array<char, std::size_t{64} << 10U> stack;
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

// Everything that is not named here ends the process (SIGSYS). Memory may be mapped, but not to be
// executed.
void filter_system_calls() {
  if (!CallFilter::supported()) return;
  constexpr std::array kAllowed = {
      SYS_read,         SYS_write,         SYS_exit_group,   SYS_exit,      SYS_brk,
      SYS_munmap,       SYS_mremap,        SYS_madvise,      SYS_futex,     SYS_restart_syscall,
      SYS_rt_sigreturn, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_rt_sigaction};
  CallFilter filter;
  for (const auto call : kAllowed) filter.decide(call, SECCOMP_RET_ALLOW);
  for (const auto call : {SYS_mmap, SYS_mprotect}) {
    // The third argument is the protection.
    filter.decide(call, {{2, PROT_EXEC, 0}}, SECCOMP_RET_ALLOW);
  }
  filter.install(SECCOMP_RET_KILL_PROCESS, 0);
}

}  // namespace

void limit_helper() {
  stack_top = static_cast<const char*>(__builtin_frame_address(0));
  catch_full_stack();
  std::set_new_handler(&exit_without_memory);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_STACK, HelperLimits::kStack);
  // The kernel would kill it without the signal that says why, were both the same.
  limit(RLIMIT_CPU, HelperLimits::kCpuSeconds, HelperLimits::kCpuSeconds + 1);
  if (!kSanitized) limit(RLIMIT_AS, HelperLimits::kAddressSpace);
}

void confine_helper(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);  // it had ended before the line above
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::syscall(SYS_close_range, 1, ~0U, 0);
  ::tzset();  // reads a file, which is not possible later
  limit_helper();
  limit(RLIMIT_FSIZE, 0);
  if (kSanitized) return;
  limit(RLIMIT_NOFILE, 1);  // descriptor 0 is open, no other can be
  limit(RLIMIT_NPROC, 0);
  filter_system_calls();
}

}  // namespace berth::worker
