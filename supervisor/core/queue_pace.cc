#include "supervisor/core/queue_pace.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace berth::core {
namespace {

// What one more time counts against all before it.
constexpr int kMemory = 8;

}  // namespace

void QueuePace::on_free(SteadyTime now, bool wanted) {
  if (last_) {
    const Duration took = std::max(now - *last_, Duration::zero());
    mean_ = mean_ ? *mean_ + (took - *mean_) / kMemory : took;
  }
  last_.reset();
  if (wanted) last_ = now;
}

std::optional<Duration> QueuePace::wait_of(std::uint32_t position, SteadyTime now) const {
  if (!mean_) return std::nullopt;
  const Duration passed = last_ ? std::min(now - *last_, *mean_) : Duration::zero();
  return *mean_ * static_cast<Duration::rep>(std::max(position, 1U)) - passed;
}

std::optional<Duration> load_wait(std::optional<Duration> room, std::optional<Duration> load) {
  if (!room || !load) return std::nullopt;
  return std::max(*room, Duration::zero()) + std::max(*load, Duration::zero());
}

}  // namespace berth::core
