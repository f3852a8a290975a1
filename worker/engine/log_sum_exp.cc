#include "worker/engine/log_sum_exp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace berth::worker {
namespace {

constexpr std::size_t kLanes = 16;

// e^x for x <= 0, without a branch or a call so that the compiler can compute several at once: e^x
// = 2^n * e^r with |r| <= ln(2)/2, and e^r by its Taylor series up to r^6 (relative error < 2e-7).
// ln(2) is split in two (Cody and Waite) so that n * ln(2) loses no digits.
inline float fast_exp(float x) {
  constexpr float kLowest = -87.0F;  // e^-87 is near the least normal float
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves no digits behind the point
  x = x < kLowest ? kLowest : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23U;
  float power = 0;
  std::memcpy(&power, &exponent, sizeof power);
  return p * power;
}

}  // namespace

float log_sum_exp(std::span<const float> logits, float highest) {
  std::array<double, kLanes> totals{};
  const float* const values = logits.data();
  const auto whole = logits.size() / kLanes * kLanes;
  // Groups are summed as floats and added up as doubles: 150,000 small addends would lose digits.
  constexpr std::size_t kGroup = 64 * kLanes;
  for (std::size_t start = 0; start < whole; start += kGroup) {
    std::array<float, kLanes> sums{};
    const auto end = std::min(whole, start + kGroup);
    for (std::size_t at = start; at < end; at += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += fast_exp(values[at + lane] - highest);
      }
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      totals[lane] += static_cast<double>(sums[lane]);
  }
  double total = 0;
  for (const double part : totals) total += part;
  for (std::size_t at = whole; at < logits.size(); ++at) {
    total += static_cast<double>(fast_exp(values[at] - highest));
  }
  return highest + static_cast<float>(std::log(total));
}

}  // namespace berth::worker
