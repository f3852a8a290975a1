#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace berth::stress {

// Whether a worker's memory grows: what it has at the end against what it has after a warm-up, a
// third of the run and a minute at most. A value.
class MemoryGrowth {
 public:
  using Time = std::chrono::milliseconds;
  // Memory that may have come after the warm-up without being called growth, besides a half of what
  // was there: that of the largest requests, which the C library keeps.
  static constexpr std::uint64_t kAllowedKib = std::uint64_t{96} << 10U;
  static constexpr Time kLongestWarmUp = std::chrono::minutes(1);

  explicit MemoryGrowth(Time run);

  // What there is so long after the begin of the run; of those after the warm-up the first counts.
  void look(std::chrono::nanoseconds since_begin, std::uint64_t kib);
  // What is wrong with so much at the end; nothing: it is well, or the run ended in its warm-up.
  [[nodiscard]] std::optional<std::string> problem(std::uint64_t kib) const;

 private:
  Time warm_up_;
  std::optional<std::uint64_t> warm_kib_;
};

}  // namespace berth::stress
