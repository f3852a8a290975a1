#include "supervisor/loop_monitor.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace berth {

LoopMonitor::LoopMonitor(Clock& clock, std::function<void()> tick)
    : clock_(clock), tick_(std::move(tick)) {
  arm(clock_.now() + kPeriod);
}

void LoopMonitor::arm(SteadyTime due) {
  timer_ = clock_.sleep_until(due, [this, due] {
    const SteadyTime now = clock_.now();
    const auto second =
        std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
    // Seconds in which no tick came at all are forgotten too.
    for (std::int64_t passed = std::max(second_ + 1, second - std::int64_t{kSeconds} + 1);
         passed <= second; ++passed) {
      worst_.at(static_cast<std::size_t>(passed) % kSeconds) = Duration::zero();
    }
    second_ = second;
    Duration& worst = worst_.at(static_cast<std::size_t>(second) % kSeconds);
    worst = std::max(worst, now - due);
    arm(now + kPeriod);
    tick_();
  });
}

Duration LoopMonitor::worst_lag() const {
  return *std::max_element(worst_.begin(), worst_.end());
}

}  // namespace berth
