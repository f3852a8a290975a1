#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "supervisor/memory/host_reading.h"

namespace berth {

// Looks at the memory of this machine, of our control group and of our processes: this one and all
// that descend from it, as its orphans come back to it. Owns nothing but what it remembers of whose
// the orphans were. One thread at a time; reads /proc, some 30 us for each process, at most
// kMostProcesses of them, and now and then some 10 us for each of their threads.
class HostLook {
 public:
  static constexpr std::size_t kMostProcesses = 2048;
  // Every so many looks it asks every process for its children, which are a file for each thread;
  // else only this one and those that are new.
  static constexpr int kDeepLook = 10;

  // `cgroup`: the directory of the control group that holds all our processes, below `mount`;
  // empty: there is none that tells of memory.
  HostLook(pid_t self, std::string cgroup, std::string mount)
      : self_(self), cgroup_(std::move(cgroup)), mount_(std::move(mount)) {}

  [[nodiscard]] memory::HostReading read();

 private:
  std::vector<memory::OwnProcess> own_processes();

  const pid_t self_;
  const std::string cgroup_;
  const std::string mount_;
  // Of the last look.
  struct Known {
    pid_t child = 0;
    std::vector<pid_t> below;
  };

  std::map<pid_t, Known> known_;
  int looks_ = 0;
};

// Where this process's control group of version 2 is; empty: it has none that can be reached.
std::string own_cgroup_directory();
// Where version 2 is mounted; empty: nowhere.
std::string cgroup_mount();
// Process numbers are not the same to the kernel's drivers as to us, as in a container.
bool drivers_count_otherwise();

}  // namespace berth
