#pragma once

#include <sys/types.h>

#include <cstdint>

namespace berth::stress {

// What the kernel says of a process; zeros where it is gone.
struct ProcessMemory {
  std::uint64_t anonymous_kib = 0;  // resident, without what comes from files
  std::uint64_t peak_kib = 0;       // resident, the most so far
  std::uint64_t threads = 0;
  std::uint64_t descriptors = 0;
};

ProcessMemory memory_of(pid_t pid);

}  // namespace berth::stress
