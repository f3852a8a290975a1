#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/memory/cgroup_memory.h"
#include "supervisor/memory/host_memory.h"
#include "supervisor/memory/pressure_reading.h"

namespace berth::memory {

// One of our processes: berthd, or a descendant of it.
struct OwnProcess {
  pid_t pid = 0;
  pid_t child = 0;          // the child of berthd that it is, or is below; berthd: itself
  std::uint64_t bytes = 0;  // anonymous and shared memory

  bool operator==(const OwnProcess&) const = default;
};

// What the kernel says of the host's memory at one moment; absent: it does not say.
struct HostReading {
  std::optional<HostMemory> machine{};
  std::optional<CgroupLimit> cgroup{};  // that bounds us to less
  std::vector<OwnProcess> processes{};
  std::optional<StallShares> stall{};
  std::optional<StallShares> own_stall{};      // of our control group
  std::optional<std::uint64_t> high_events{};  // of it, a counter
};

}  // namespace berth::memory
