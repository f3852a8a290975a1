#pragma once

#include <sys/types.h>

#include <cstddef>

namespace berth::worker {

// What berth-template exits with where a limit ended it, so that its worker can say which.
struct HelperExit {
  static constexpr int kUsage = 2;
  static constexpr int kMemory = 71;
  static constexpr int kStack = 72;
  static constexpr int kProtocol = 73;
};

struct HelperLimits {
  static constexpr std::size_t kAddressSpace = std::size_t{512} << 20U;
  static constexpr std::size_t kStack = std::size_t{64} << 20U;
};

// Shuts berth-template in before it sees anything of a model's or a client's: it dies with the
// thread that started it (process `parent`), gains no privileges, writes no file and dumps no core,
// has one open descriptor (0), bounded memory and stack, and may make no system calls but those
// that reading, writing and memory need. CPU time is bounded by the parent, for every request anew.
// Exits where the parent is gone already. Main thread; no other may be there.
//
// Memory that is not there ends the process with kMemory, a stack that is full with kStack.
// Sanitizers need more memory and system calls than that: their builds do without.
void confine_helper(pid_t parent);

}  // namespace berth::worker
