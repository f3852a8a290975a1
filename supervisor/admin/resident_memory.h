#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "common/clock.h"

namespace berth::admin {

// The memory of processes, read at most once in `age` for each: reading it walks the page tables of
// the process, which takes milliseconds, and who looks at the state looks often. The function that
// is returned is for any thread and keeps at most 1,024 processes.
std::function<std::uint64_t(pid_t)> remembered(const Clock& clock, Duration age,
                                               std::function<std::uint64_t(pid_t)> read);

}  // namespace berth::admin
