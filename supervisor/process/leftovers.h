#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/process/instance_mark.h"

namespace berth::process {

// A process of an earlier run of the supervisor, as it was recorded.
struct Leftover {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // as ChildProcess::start_ticks()
  std::string boot_id;
};

enum class LeftoverEnd : std::uint8_t {
  kGone,    // nothing to do: no such process, or another one has its number now
  kKilled,  // it lived, and was killed with its group
  kStuck,   // it was killed, but did not end within the wait
};

// Kills what still lives of `leftovers` (L4), all at once, and waits at most `wait` until they are
// gone. A process is touched only when pid, start time and boot id are those of the record.
// Answers in the order given. Blocks: call it on the pool, or before the loop runs.
std::vector<LeftoverEnd> kill_leftovers(const std::vector<Leftover>& leftovers,
                                        std::chrono::milliseconds wait);

// A process that was found by the mark of its worker.
struct MarkedLeftover {
  pid_t pid = 0;
  std::string instance;
  LeftoverEnd end = LeftoverEnd::kKilled;  // or kStuck
};

// Finds every process that a worker of `owner` left behind (instance_mark.h) and kills it: what
// lives on after both the supervisor and a berth-shim were killed, when nobody knows their
// descendants any more (L4). Looks again until a whole look finds none, as they may go on forking,
// at most `wait` long; what lives then is kStuck. Call it after kill_leftovers() and before
// anything is launched. Blocks.
//
// Not found are: a process whose program took the mark out of its environment (`env -i`, a
// container of its own) or wrote over it; one that runs as another user or that hides from its own
// user (PR_SET_DUMPABLE, set-user-id), where this process is not privileged; and one whose
// environment has more than 1 MiB before the mark. This process itself is never taken for one.
std::vector<MarkedLeftover> kill_marked(const std::string& owner, std::chrono::milliseconds wait);

// Kills every process with that mark but `spared`, in the same way and with the same limits: what
// keeps a berth-shim from ending its descendants. Any thread. Blocks for at most `wait`.
void kill_marked_instance(const InstanceMark& mark, pid_t spared, std::chrono::milliseconds wait);

}  // namespace berth::process
