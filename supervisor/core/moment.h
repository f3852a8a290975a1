#pragma once

#include "common/clock.h"

namespace berth::core {

// One instant on all three clocks. The machines of core/ hold no clock: each input brings the time.
struct Moment {
  SteadyTime steady{};
  BootTime boot{};
  WallTime wall{};
};

inline Moment moment_of(const Clock& clock) {
  return {clock.now(), clock.boot_now(), clock.wall_now()};
}

// A value with the time of its last change.
template <typename T>
struct Stamped {
  T value{};
  Moment since{};

  void set(T next, const Moment& now) {
    value = next;
    since = now;
  }
};

}  // namespace berth::core
