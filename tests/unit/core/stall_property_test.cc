#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "supervisor/core/stall.h"
#include "supervisor/core/wedge.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kBegin{seconds(1000)};

// A step of a load: how long after the last look, and what moved.
struct Step {
  milliseconds after{};
  std::uint32_t what = 0;
  std::uint32_t by = 0;
};

Step step_of(std::uint32_t draw) {
  return {milliseconds(draw % 3000), (draw >> 12U) % 7, (draw >> 16U) + 1};
}

void apply(const Step& step, TreeSample& sample) {
  switch (step.what) {
    case 0:
      sample.progress += step.by;
      break;
    case 1:
      sample.log_bytes = sample.log_bytes.value_or(0) + step.by;
      break;
    case 2:
      sample.storage_bytes = sample.storage_bytes.value_or(0) + step.by * 16;
      break;
    case 3:
      sample.cpu_time = sample.cpu_time.value_or(Duration{}) + milliseconds(step.by % 300);
      break;
    case 4:
      sample.resident_bytes = std::uint64_t{step.by} * 64;
      break;
    case 5:
      sample.read_bytes.reset();
      break;
    default:
      break;
  }
}

// Never stalled before the window is over since something surely moved; always after that much
// watched time without any change.
RC_GTEST_PROP(StallProperty, L8_OnlyAndAlwaysWhenNothingMoves,
              (const std::vector<std::uint32_t>& draws)) {
  StallWatch watch(StallPolicy{}, kBegin);
  TreeSample sample;
  SteadyTime now = kBegin;
  SteadyTime surely_moved = kBegin;
  for (const std::uint32_t draw : draws) {
    const Step step = step_of(draw);
    now += step.after;
    apply(step, sample);
    watch.feed(sample, now);
    if (step.what == 0 || step.what == 1) surely_moved = now;
    RC_ASSERT(watch.still_for() <= now - surely_moved);
    RC_ASSERT(watch.still_for() <= now - watch.moved_at());
    RC_ASSERT(watch.stalled() == (watch.still_for() >= seconds(60)));
    RC_ASSERT(watch.reason().size() <= 120);
  }
  // 70 s: what went on within the last span may still be added up to a movement.
  for (int second = 0; second < 70; ++second) watch.feed(sample, now += seconds(1));
  RC_ASSERT(watch.stalled());
  ++sample.progress;
  watch.feed(sample, now += seconds(1));
  RC_ASSERT(!watch.stalled());
  RC_ASSERT(watch.last_movement() == Movement::kProgress);
}

// Whatever a worker says: it is wedged only after wedge_after of work that stood still, and then
// surely.
RC_GTEST_PROP(WedgeProperty, L9_OnlyAndAlwaysWhenWorkStandsStill,
              (const std::vector<std::uint32_t>& draws)) {
  WedgeWatch watch(WedgePolicy{}, kBegin);
  WorkPulse pulse;
  SteadyTime now = kBegin;
  SteadyTime excused = kBegin;
  std::optional<SteadyTime> heard;
  std::uint32_t requests = 0;
  for (const std::uint32_t draw : draws) {
    now += milliseconds(draw % 8000);
    const std::uint32_t what = (draw >> 13U) % 4;
    if (what == 0) {
      requests = (draw >> 16U) % 4;
      watch.on_time(requests, now);
    } else if (what < 3) {
      if (what == 1) ++pulse.progress;
      pulse.active = (draw >> 16U) % 4;
      pulse.waiting = (draw >> 18U) % 3;
      pulse.paused = std::min((draw >> 20U) % 4, pulse.active);
      watch.on_pulse(pulse, now);
      heard = now;
    } else {
      watch.on_time(requests, now);
    }
    const bool work = pulse.active > pulse.paused || (pulse.active == 0 && pulse.waiting > 0);
    const bool silent = heard && now - *heard > WedgePolicy{}.longest_silence;
    if (what == 1 || requests == 0 || (!work && !silent)) excused = now;
    RC_ASSERT(watch.still_for() <= now - excused);
    RC_ASSERT(watch.wedged() == (watch.still_for() >= seconds(120)));
  }
  pulse.active = 2;
  pulse.paused = 1;
  watch.on_pulse(pulse, now);
  for (int second = 0; second <= 120; ++second) watch.on_time(1, now += seconds(1));
  RC_ASSERT(watch.wedged());
}

}  // namespace
}  // namespace berth::core
