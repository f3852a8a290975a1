#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace berth::core {

// When a model may be started again after its worker died when it was ready (L9): 1 s, doubled by
// each further death up to 30 s; forgotten after 10 stable minutes. And when it is not to be
// started any more: 3 deaths within 120 s are a crash_loop failure. A value; pure. An operator who
// wants another try begins with a new one.
class RestartBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::seconds(30);
  static constexpr Duration kStable = std::chrono::minutes(10);
  static constexpr std::size_t kLoopDeaths = 3;
  static constexpr Duration kLoopTime = std::chrono::seconds(120);

  // An instance that was ready for `ready_for` is gone; `died`: by itself.
  void on_end(bool died, Duration ready_for, SteadyTime now);

  // The earliest time of the next start; in the past where nothing stands against it.
  [[nodiscard]] SteadyTime not_before() const { return not_before_; }
  // Deaths that were not followed by a stable time.
  [[nodiscard]] std::uint32_t deaths() const { return deaths_; }
  // The last 3 deaths lie within 120 s.
  [[nodiscard]] bool crash_loop() const;

 private:
  std::uint32_t deaths_ = 0;
  SteadyTime not_before_{};                                         // the clock's beginning
  std::array<std::optional<SteadyTime>, kLoopDeaths> last_deaths_;  // the newest last
};

}  // namespace berth::core
