#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"

namespace berth::process {

// What a process and its descendants have used since they started. Of an ended child its parent
// has it, once it was waited for; what the subreaper reaped is lost, so sums may fall.
struct TreeUse {
  // Absent where the kernel does not let us see it of any of them (another user's process).
  std::optional<std::uint64_t> storage_bytes;  // read_bytes: fetched from storage
  std::optional<std::uint64_t> read_bytes;     // rchar: by read calls, also from the page cache
  Duration cpu_time{};                         // user and system, in clock ticks
  std::uint64_t resident_bytes = 0;            // shared pages count for each that shares them
  std::uint32_t processes = 0;
  bool complete = true;  // false: there are more processes than are looked at
};

// Sums over the process tree of one child (L8), as /proc shows it: its descendants, and those that
// have lost their parent and came to the subreaper: known to belong by having been seen in the tree
// before, by pid and start time, or by the child's process group.
//
// One thread at a time, any thread; reads memory-backed files only, some 40 us per process of the
// tree. Owns no process. A process that vanishes while it is looked at is left out.
class ProcessTree {
 public:
  static constexpr std::size_t kMostProcesses = 512;

  // `root`: the child, the leader of its own process group; `start_ticks`: its start, so that
  // another process with its number is never taken for it. `reaper`: who inherits its orphans.
  ProcessTree(pid_t root, std::uint64_t start_ticks, pid_t reaper);

  // Nothing where no process of the tree is left.
  std::optional<TreeUse> sample();

  // The processes of the last sample. At most kMostProcesses.
  [[nodiscard]] const std::vector<pid_t>& members() const { return members_; }

 private:
  struct Known {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;
  };

  // The orphans at the reaper that belong to the tree join those that are to be looked at.
  void add_orphans(std::vector<pid_t>& queue) const;
  [[nodiscard]] bool knows(pid_t pid, std::uint64_t start_ticks) const;

  const pid_t root_;
  const std::uint64_t root_start_;
  const pid_t reaper_;
  std::vector<Known> known_;  // of the last sample
  std::vector<pid_t> members_;
};

}  // namespace berth::process
