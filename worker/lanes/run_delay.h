#pragma once

#include <optional>

#include "common/clock.h"

namespace berth::worker {

// How long the threads of this process could have run and had no core, all of them together since
// each began: the kernel's run delay (/proc/PID/task/TID/schedstat, second field, in nanoseconds;
// Documentation/scheduler/sched-stats of Linux). A thread that ends takes its part with it. nullopt
// where the kernel does not tell. Any thread; some microseconds per thread of the process.
std::optional<Duration> run_delay();

}  // namespace berth::worker
