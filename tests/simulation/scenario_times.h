#pragma once

#include <chrono>

#include "common/clock.h"
#include "supervisor/core/log/log_verdict.h"

// How long each part of a simulated life may take.
namespace berth::sim {

// Longer than any step of a stop: cancel, SIGTERM, SIGKILL (L3).
inline constexpr Duration kStopBound =
    std::chrono::milliseconds(250) + std::chrono::seconds(10) + std::chrono::seconds(5);
// The longest that a process which was killed takes to go.
inline constexpr Duration kSlowestKill = std::chrono::seconds(60);
inline constexpr Duration kEvidence = std::chrono::seconds(1);
inline constexpr Duration kBackOff = std::chrono::seconds(30);
inline constexpr Duration kLoadTimeout = std::chrono::seconds(20);
inline constexpr Duration kLoadStall = std::chrono::seconds(8);
inline constexpr Duration kWedgeAfter = std::chrono::seconds(15);
// A line that is held decides after that long at most.
inline constexpr Duration kLongestHold = core::LogParser::kLongestHold;
inline constexpr Duration kRest =
    kLoadTimeout + kEvidence + kStopBound + kBackOff + kLoadTimeout + kSlowestKill;

}  // namespace berth::sim
