#include "worker/sandbox/call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace berth::worker {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kAtLeast = BPF_JMP | BPF_JGE | BPF_K;
constexpr std::uint16_t kReturn = BPF_RET | BPF_K;
constexpr unsigned int kNumber = offsetof(seccomp_data, nr);
constexpr unsigned int kConditionSize = 3;  // instructions

}  // namespace

bool CallFilter::supported() {
  return kArchitecture != 0;
}

CallFilter::CallFilter() {
  constexpr std::size_t kUsual = 512;
  program_.reserve(kUsual);
  load(offsetof(seccomp_data, arch));
  add(kEqual, kArchitecture, 1, 0);
  add(kReturn, SECCOMP_RET_KILL_PROCESS);
  load(kNumber);
}

void CallFilter::add(std::uint16_t code, std::uint32_t value, unsigned int yes, unsigned int no) {
  program_.push_back({code, static_cast<std::uint8_t>(yes), static_cast<std::uint8_t>(no), value});
}

void CallFilter::load(unsigned int offset) {
  add(kLoad, offset);
}

void CallFilter::decide(long number, std::uint32_t action) {
  add(kEqual, static_cast<std::uint32_t>(number), 0, 1);
  add(kReturn, action);
}

void CallFilter::decide_from(std::uint32_t number, std::uint32_t action) {
  add(kAtLeast, number, 0, 1);
  add(kReturn, action);
}

void CallFilter::decide(long number, std::initializer_list<Condition> conditions,
                        std::uint32_t action) {
  const auto size = static_cast<unsigned int>(conditions.size()) * kConditionSize;
  // Another call: behind the conditions, the return and the second load of the number.
  add(kEqual, static_cast<std::uint32_t>(number), 0, size + 2);
  unsigned int left = size;
  for (const auto& condition : conditions) {
    left -= kConditionSize;
    // Both architectures are little endian: the low half comes first.
    load(static_cast<unsigned int>(offsetof(seccomp_data, args) +
                                   condition.argument * sizeof(std::uint64_t)));
    add(kAnd, condition.mask);
    const unsigned int unmet = left + 1;
    add(kEqual, condition.value, condition.equal ? 0 : unmet, condition.equal ? unmet : 0);
  }
  add(kReturn, action);
  load(kNumber);
}

int CallFilter::install(std::uint32_t otherwise, unsigned int flags) {
  if (!supported()) return ENOSYS;
  add(kReturn, otherwise);
  const sock_fprog program{static_cast<std::uint16_t>(program_.size()), program_.data()};
  const long installed = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  if (installed > 0) return ESRCH;  // a thread that has a filter of its own
  return installed == 0 ? 0 : errno;
}

}  // namespace berth::worker
