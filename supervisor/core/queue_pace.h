#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace berth::core {

// How fast those who wait for one model get their places, learnt from the times between them (M13).
// A value.
class QueuePace {
 public:
  // A place became free. `wanted`: somebody waits for it, so that the next one counts.
  void on_free(SteadyTime now, bool wanted);
  // The model is not there any more, or nobody waits: what is seen next says nothing of its pace.
  void pause() { last_.reset(); }
  // How long until the one in that place of the queue is served; 1 = next. Absent: nothing is
  // known.
  [[nodiscard]] std::optional<Duration> wait_of(std::uint32_t position, SteadyTime now) const;

 private:
  std::optional<SteadyTime> last_;  // a place became free, and was wanted
  std::optional<Duration> mean_;    // between two; of late ones more than of early ones
};

// How long a model that has no place yet is waited for: `room`, until there is memory for it, then
// its load. Absent where either is not known.
std::optional<Duration> load_wait(std::optional<Duration> room, std::optional<Duration> load);

}  // namespace berth::core
