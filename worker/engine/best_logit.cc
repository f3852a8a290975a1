#include "worker/engine/best_logit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace berth::worker {
namespace {

// Values that are looked at side by side, so that the compiler makes vector instructions of it: a
// vocabulary of 150,000 is gone through for every token.
constexpr std::size_t kLanes = 16;

constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;
constexpr std::uint32_t kInfinity = 0x7F800000U;

}  // namespace

std::optional<std::size_t> best_logit(std::span<const float> logits) {
  std::array<float, kLanes> best{};
  best.fill(-std::numeric_limits<float>::infinity());
  std::array<std::uint32_t, kLanes> broken{};
  const float* const values = logits.data();
  const auto whole = logits.size() / kLanes * kLanes;
  for (std::size_t at = 0; at < whole; at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[at + lane];
      best[lane] = value > best[lane] ? value : best[lane];
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      broken[lane] |= (bits & kMagnitude) > kInfinity ? 1U : 0U;  // NaN
    }
  }
  for (std::size_t at = whole; at < logits.size(); ++at) {
    if (std::isnan(values[at])) return std::nullopt;
    best[0] = std::max(best[0], values[at]);
  }
  const float highest = *std::max_element(best.begin(), best.end());
  const bool sound = std::all_of(broken.begin(), broken.end(), [](auto flag) { return flag == 0; });
  if (!sound || !std::isfinite(highest)) return std::nullopt;
  return static_cast<std::size_t>(std::find(logits.begin(), logits.end(), highest) -
                                  logits.begin());
}

}  // namespace berth::worker
