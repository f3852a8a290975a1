#pragma once

#include <chrono>
#include <cstdint>

#include "common/clock.h"

namespace berth {

// Whole units of a duration, rounded toward zero, as records, events and messages carry them. A
// negative one counts as no microseconds.
constexpr std::int64_t whole_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}
constexpr std::uint64_t whole_microseconds(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

}  // namespace berth
