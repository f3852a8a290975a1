#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>

namespace berth::worker {

// What berth-template exits with where a limit ended it, so that its worker can say which.
struct HelperExit {
  static constexpr int kUsage = 2;
  static constexpr int kMemory = 71;
  static constexpr int kStack = 72;
  static constexpr int kProtocol = 73;
  static constexpr int kNoLimits = 74;  // something refuses setrlimit()
};

struct HelperLimits {
  // Of the whole process: one that has computed for `kCpuUsed` between two calls ends itself, so
  // that each call has nearly all of it.
  static constexpr unsigned int kCpuSeconds = 2;
  static constexpr std::chrono::milliseconds kCpuUsed{250};
  static constexpr std::size_t kAddressSpace = std::size_t{512} << 20U;
  static constexpr std::size_t kStack = std::size_t{64} << 20U;
};

// Sanitizers need more memory and system calls than a helper has: their builds do without.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Bounds this process's CPU time (kCpuSeconds, then SIGXCPU), memory and stack, for good, and takes
// core dumps from it. Memory that is not there ends it with kMemory, a stack that is full with
// kStack, a limit that cannot be set with kNoLimits. Main thread, before anything of a template's
// or of a client's is read; no other thread may be there.
void limit_helper();

// Shuts berth-template in before it sees anything of a model's or a client's: it dies with the
// thread that started it (process `parent`), gains no privileges, writes no file and dumps no core,
// has one open descriptor (0) and the bounds of limit_helper(), and may make no system calls but
// those that reading, writing and memory need: it cannot raise a bound. Exits where the parent is
// gone already. Main thread; no other may be there. Looser where kSanitized.
void confine_helper(pid_t parent);

}  // namespace berth::worker
