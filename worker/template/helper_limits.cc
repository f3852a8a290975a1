#include "worker/template/helper_limits.h"

#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
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
#include <cstdint>
#include <ctime>
#include <new>

namespace berth::worker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;  // no filter
#endif

[[noreturn]] void exit_without_memory() {
  ::_exit(HelperExit::kMemory);
}

// The address of main()'s frame: faults in the stack's range below it are those of a full stack.
const char* stack_top = nullptr;

// On a stack of its own: the other one may be full.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  const auto* const address = static_cast<const char*>(info->si_addr);
  constexpr std::size_t kSlack = std::size_t{4} << 20U;
  if (address < stack_top && address + HelperLimits::kStack + kSlack > stack_top) {
    ::_exit(HelperExit::kStack);
  }
  std::signal(signal, SIG_DFL);  // the instruction is repeated, and ends the process as it should
}

void limit(__rlimit_resource_t resource, rlim_t value) {
  rlimit now{};
  ::getrlimit(resource, &now);
  const rlim_t most = std::min(value, now.rlim_max);
  const rlimit wanted{most, most};
  ::setrlimit(resource, &wanted);
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

constexpr sock_filter statement(std::uint16_t code, std::uint32_t value) {
  return {code, 0, 0, value};
}
constexpr sock_filter jump(std::uint16_t code, std::uint32_t value, std::uint8_t yes,
                           std::uint8_t no) {
  return {code, yes, no, value};
}
constexpr sock_filter load(std::size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// Everything that is not named here ends the process (SIGSYS). Memory may be mapped, but not to be
// executed.
void filter_system_calls() {
  if (kArchitecture == 0) return;
  constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
  constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
  // The low half of the third argument (little endian), where the protection stands.
  constexpr auto kProtection = offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t);
  constexpr std::array kAllowed = {
      SYS_read,         SYS_write,         SYS_exit_group,   SYS_exit,      SYS_brk,
      SYS_munmap,       SYS_mremap,        SYS_madvise,      SYS_futex,     SYS_restart_syscall,
      SYS_rt_sigreturn, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_rt_sigaction};
  std::array<sock_filter, 6 + 2 * kAllowed.size() + 7> filter{};
  std::size_t size = 0;
  const auto add = [&](sock_filter one) { filter.at(size++) = one; };
  add(load(offsetof(seccomp_data, arch)));
  add(jump(kEqual, kArchitecture, 1, 0));
  add(statement(kReturn, SECCOMP_RET_KILL_PROCESS));
  add(load(offsetof(seccomp_data, nr)));
  for (const auto call : kAllowed) {
    add(jump(kEqual, static_cast<std::uint32_t>(call), 0, 1));
    add(statement(kReturn, SECCOMP_RET_ALLOW));
  }
  add(jump(kEqual, SYS_mmap, 2, 0));
  add(jump(kEqual, SYS_mprotect, 1, 0));
  add(statement(kReturn, SECCOMP_RET_KILL_PROCESS));
  add(load(kProtection));
  add(jump(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
  add(statement(kReturn, SECCOMP_RET_KILL_PROCESS));
  add(statement(kReturn, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<std::uint16_t>(size), filter.data()};
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

}  // namespace

void confine_helper(pid_t parent) {
  stack_top = static_cast<const char*>(__builtin_frame_address(0));
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(0);  // it had ended before the line above
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::syscall(SYS_close_range, 1, ~0U, 0);
  ::tzset();  // reads a file, which is not possible later
  catch_full_stack();
  std::set_new_handler(&exit_without_memory);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_STACK, HelperLimits::kStack);
  if (kSanitized) return;
  limit(RLIMIT_NOFILE, 1);  // descriptor 0 is open, no other can be
  limit(RLIMIT_NPROC, 0);
  limit(RLIMIT_AS, HelperLimits::kAddressSpace);
  filter_system_calls();
}

}  // namespace berth::worker
