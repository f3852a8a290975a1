#include "supervisor/core/backoff.h"

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace berth::core {

void RestartBackoff::on_end(ReadyEnd end, Duration ready_for, SteadyTime now) {
  if (ready_for >= kStable) *this = RestartBackoff();
  if (end == ReadyEnd::kStopped) return;
  // Five doublings are past the longest wait already.
  const std::uint32_t doublings = std::min<std::uint32_t>(deaths_, 5);
  not_before_ = now + std::min<Duration>(kFirst * (1U << doublings), kLongest);
  ++deaths_;
  if (end != ReadyEnd::kDied) return;
  std::rotate(last_deaths_.begin(), last_deaths_.begin() + 1, last_deaths_.end());
  last_deaths_.back() = now;
}

bool RestartBackoff::crash_loop() const {
  return last_deaths_.front() && *last_deaths_.back() - *last_deaths_.front() <= kLoopTime;
}

}  // namespace berth::core
