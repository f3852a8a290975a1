#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "supervisor/memory/host_reading.h"
#include "supervisor/own_processes.h"

namespace berth {

// Looks at the memory of this machine, of our control group and of our processes (OwnProcesses).
// One thread at a time; reads /proc.
class HostLook {
 public:
  // `cgroup`: the directory of the control group that holds all our processes, below `mount`;
  // empty: there is none that tells of memory.
  HostLook(pid_t self, std::string cgroup, std::string mount)
      : processes_(self), cgroup_(std::move(cgroup)), mount_(std::move(mount)) {}

  [[nodiscard]] memory::HostReading read();

 private:
  OwnProcesses processes_;
  const std::string cgroup_;
  const std::string mount_;
};

// Process numbers are not the same to the kernel's drivers as to us, as in a container.
bool drivers_count_otherwise();

}  // namespace berth
