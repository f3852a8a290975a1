#pragma once

#include <chrono>
#include <vector>

#include "common/clock.h"
#include "supervisor/memory/domain_view.h"
#include "supervisor/residency/residency.h"

namespace berth {

// An instance that has been on its way up or down for longer is taken to hold its whole charge:
// what a load is going to take of a device it has by then, and what was killed has its own time
// limits.
inline constexpr auto kLongestMove = std::chrono::minutes(10);

// What the instances are charged, for devices whose driver does not tell whose memory is whose. One
// that serves, drains, or is stuck holds all of it until it is proven gone (L2).
std::vector<memory::ChargedProcess> charged_processes(
    const std::vector<residency::InstanceSnapshot>& instances, WallTime now);

}  // namespace berth
