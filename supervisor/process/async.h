#pragma once

#include <functional>

#include "common/clock.h"

namespace berth::process {

// What the wiring lends to parts that must not block the core strand.

// Runs something that blocks on the small thread pool. Any thread.
using RunBlocking = std::function<void(std::function<void()>)>;

// Calls back once on the core strand when the file descriptor is readable; dropping the timer ends
// the wait. Core strand only; the descriptor must outlive the wait.
using OnReadable = std::function<Timer(int fd, std::function<void()>)>;

}  // namespace berth::process
