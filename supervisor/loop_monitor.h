#pragma once

#include <array>
#include <functional>

#include "common/clock.h"

namespace berth {

// Measures how late the core loop is, and shows that it is alive: its tick runs on the very strand
// that does the work, so a watchdog that it feeds starves when the strand does. Core strand only.
class LoopMonitor {
 public:
  // `tick` is called every 100 ms, as far as the loop keeps up.
  LoopMonitor(Clock& clock, std::function<void()> tick);
  LoopMonitor(const LoopMonitor&) = delete;
  LoopMonitor& operator=(const LoopMonitor&) = delete;

  // The longest that a tick was late within the last minute.
  [[nodiscard]] Duration worst_lag() const;

 private:
  static constexpr Duration kPeriod = std::chrono::milliseconds(100);
  static constexpr std::size_t kSeconds = 60;

  void arm(SteadyTime due);

  Clock& clock_;
  std::function<void()> tick_;
  std::array<Duration, kSeconds> worst_{};  // by second, a ring
  std::int64_t second_ = 0;
  Timer timer_;
};

}  // namespace berth
