#pragma once

#include <functional>
#include <optional>

#include "common/clock.h"

namespace berth::worker {

// Reads how long the threads of this process could have run and had no core, all of them together
// since each began: the kernel's run delay (/proc/PID/task/TID/schedstat, second field, in
// nanoseconds; Documentation/scheduler/sched-stats of Linux). A thread that ends takes its part
// with it. nullopt where the kernel does not tell. What is returned keeps one file open for each
// thread that it has met, as opening them is most of the cost; its copies share them. It is for one
// thread at a time; a call takes about a microsecond per thread of the process.
std::function<std::optional<Duration>()> run_delay_reader();

}  // namespace berth::worker
