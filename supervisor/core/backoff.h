#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/clock.h"

namespace berth::core {

// How an instance that was ready ended.
enum class ReadyEnd : std::uint8_t {
  kStopped,  // somebody wanted it gone
  kGivenUp,  // we ended it, because it served nobody any more: wedged, or its connection broke
  kDied,     // by itself
};

// When a model may be started again after its worker died when it was ready (L9): 1 s, doubled by
// each further death up to 30 s; forgotten after 10 stable minutes. One that was given up counts
// like a death. And when it is not to be started any more: 3 deaths within 120 s are a crash_loop
// failure, and of those only the ones that we did not order count (L20). A value; pure. An operator
// who wants another try begins with a new one.
class RestartBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::seconds(30);
  static constexpr Duration kStable = std::chrono::minutes(10);
  static constexpr std::size_t kLoopDeaths = 3;
  static constexpr Duration kLoopTime = std::chrono::seconds(120);

  // An instance that was ready for `ready_for` is gone.
  void on_end(ReadyEnd end, Duration ready_for, SteadyTime now);

  // The earliest time of the next start; in the past where nothing stands against it.
  [[nodiscard]] SteadyTime not_before() const { return not_before_; }
  // Ends but stops that were not followed by a stable time.
  [[nodiscard]] std::uint32_t deaths() const { return deaths_; }
  // The last 3 that died by themselves lie within 120 s.
  [[nodiscard]] bool crash_loop() const;

 private:
  std::uint32_t deaths_ = 0;
  SteadyTime not_before_{};                                         // the clock's beginning
  std::array<std::optional<SteadyTime>, kLoopDeaths> last_deaths_;  // the newest last
};

}  // namespace berth::core
