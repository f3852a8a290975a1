#include "supervisor/core/wedge.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/units.h"

namespace berth::core {
namespace {

// Work that goes on without a client's doing. With all places taken by streams that are paused,
// those who wait for a place are not stuck either.
bool has_work(const WorkPulse& pulse) {
  return pulse.active > pulse.paused || (pulse.active == 0 && pulse.waiting > 0);
}

}  // namespace

void WedgeWatch::on_pulse(const WorkPulse& pulse, SteadyTime now) {
  pass(now);
  silent_ = Duration::zero();
  if (!heard_ || pulse.progress != pulse_.progress || !has_work(pulse)) still_ = Duration::zero();
  pulse_ = pulse;
  heard_ = true;
}

void WedgeWatch::on_time(std::uint32_t requests, SteadyTime now) {
  requests_ = requests;
  pass(now);
}

void WedgeWatch::pass(SteadyTime now) {
  const Duration step = std::clamp<Duration>(now - now_, Duration::zero(), policy_.longest_step);
  now_ = std::max(now_, now);
  silent_ = requests_ == 0 ? Duration::zero() : silent_ + step;
  const bool fell_silent = heard_ && silent_ > policy_.longest_silence;
  if (requests_ == 0 || (!has_work(pulse_) && !fell_silent)) {
    still_ = Duration::zero();
  } else {
    still_ += step;
  }
}

std::optional<Duration> WedgeWatch::wedge_after() const {
  if (policy_.fixed) {
    if (*policy_.fixed <= Duration::zero()) return std::nullopt;
    return policy_.fixed;
  }
  // No overflow: a batch that takes longer than a day is no prediction.
  const Duration batch = std::clamp<Duration>(batch_, Duration::zero(), std::chrono::hours(24));
  return std::max<Duration>(policy_.least, batch * policy_.batches);
}

bool WedgeWatch::wedged() const {
  const std::optional<Duration> limit = wedge_after();
  return limit && still_ >= *limit;
}

std::string WedgeWatch::reason() const {
  const std::uint32_t count = std::max<std::uint32_t>(requests_, 1);
  return "its progress stood still for " +
         format_duration_human(std::chrono::floor<std::chrono::seconds>(still_)) + " with " +
         std::to_string(count) + (count == 1 ? " request" : " requests") + " in flight";
}

}  // namespace berth::core
