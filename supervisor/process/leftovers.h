#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace berth::process
