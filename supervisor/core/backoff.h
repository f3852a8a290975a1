#pragma once

#include <chrono>
#include <cstdint>

#include "common/clock.h"

namespace berth::core {

// When a model may be started again after its worker died when it was ready (L9): 1 s, doubled by
// each further death up to 30 s; forgotten after 10 stable minutes. A value; pure.
class RestartBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::seconds(30);
  static constexpr Duration kStable = std::chrono::minutes(10);

  // An instance that was ready for `ready_for` is gone; `died`: by itself.
  void on_end(bool died, Duration ready_for, SteadyTime now);

  // The earliest time of the next start; in the past where nothing stands against it.
  [[nodiscard]] SteadyTime not_before() const { return not_before_; }
  // Deaths that were not followed by a stable time.
  [[nodiscard]] std::uint32_t deaths() const { return deaths_; }

 private:
  std::uint32_t deaths_ = 0;
  SteadyTime not_before_{};  // the clock's beginning
};

}  // namespace berth::core
