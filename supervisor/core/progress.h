#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"

namespace berth::core {

// How far a load is as a whole, made of what the worker says of its phases (starting, weights,
// context, warmup), and how long it will still take. Pure; one per load.
class LoadProgress {
 public:
  explicit LoadProgress(SteadyTime started) : started_(started) {}

  // The worker's word: `within` is the fraction of that phase, 0 to 1. An unknown phase changes
  // the name and leaves the fraction. The whole never goes back. Returns whether it reached
  // another phase or another tenth.
  bool update(std::string_view phase, float within);

  // How long the model's last successful load took, where that is known.
  void expect(std::chrono::milliseconds last_load) { last_load_ = last_load; }

  [[nodiscard]] const std::string& phase() const { return phase_; }
  [[nodiscard]] float fraction() const { return fraction_; }  // 0 to 1
  // By this load's own rate, and the more by the last load's time the younger this one is. Absent:
  // nothing is known yet.
  [[nodiscard]] std::optional<std::chrono::milliseconds> eta(SteadyTime now) const;

 private:
  SteadyTime started_;
  std::string phase_ = "starting";
  float fraction_ = 0;
  std::optional<std::chrono::milliseconds> last_load_;
};

}  // namespace berth::core
