#include "supervisor/core/progress.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>

#include "common/clock.h"

namespace berth::core {
namespace {

// Shares of a load, by where its time goes when the file must be read from a disk.
struct Phase {
  std::string_view name;
  float begin;
  float share;
};
constexpr std::array kPhases = {
    Phase{"starting", 0.00F, 0.02F},
    Phase{"weights", 0.02F, 0.90F},
    Phase{"context", 0.92F, 0.04F},
    Phase{"warmup", 0.96F, 0.04F},
};

// Before this much is done a load's own rate says nothing.
constexpr float kOwnRateFrom = 0.05F;

}  // namespace

bool LoadProgress::update(std::string_view phase, float within) {
  const bool other_phase = phase != phase_;
  const float before = fraction_;
  phase_ = phase;
  const float part = std::isfinite(within) ? std::clamp(within, 0.0F, 1.0F) : 0.0F;
  const auto* const row = std::ranges::find(kPhases, phase, &Phase::name);
  if (row != kPhases.end()) fraction_ = std::max(fraction_, row->begin + row->share * part);
  return other_phase || std::floor(fraction_ * 10) > std::floor(before * 10);
}

std::optional<std::chrono::milliseconds> LoadProgress::eta(SteadyTime now) const {
  using Seconds = std::chrono::duration<double>;
  const Seconds elapsed = now - started_;
  std::optional<Seconds> own;
  if (fraction_ >= kOwnRateFrom) {
    const double done = static_cast<double>(fraction_);
    own = elapsed * ((1.0 - done) / done);
  }
  std::optional<Seconds> known;
  if (last_load_ && elapsed < *last_load_) known = Seconds(*last_load_) - elapsed;
  std::optional<Seconds> left = own ? own : known;
  if (own && known) {
    const double weight = static_cast<double>(fraction_);
    left = *own * weight + *known * (1.0 - weight);
  }
  if (!left) return std::nullopt;
  return std::chrono::round<std::chrono::milliseconds>(*left);
}

}  // namespace berth::core
