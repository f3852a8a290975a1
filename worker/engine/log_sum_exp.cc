#include "worker/engine/log_sum_exp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace berth::worker {
namespace {

// Vectors of every processor that we run on; the compiler does not find them by itself here.
using Floats = float __attribute__((vector_size(16)));
using Integers = std::int32_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;
constexpr std::size_t kChains = 4;  // sums side by side: an addition waits for the one before

// e^x for x <= 0, without a branch or a call: e^x = 2^n * e^r with |r| <= ln(2)/2, and e^r by its
// Taylor series up to r^6 (relative error < 2e-7). ln(2) is split in two (Cody and Waite) so that
// n * ln(2) loses no digits.
inline Floats exp_of(Floats x) {
  constexpr float kLowest = -87.0F;  // e^-87 is near the least normal float
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves no digits behind the point
  const Floats lowest = {kLowest, kLowest, kLowest, kLowest};
  x = x < lowest ? lowest : x;
  const Floats shifted = x * kLog2E + kRound;
  const Floats n = shifted - kRound;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats p = r * (1.0F / 720.0F) + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const Integers exponent = (__builtin_convertvector(n, Integers) + 127) << 23;
  Floats power;
  std::memcpy(&power, &exponent, sizeof power);
  return p * power;
}

inline Floats load(const float* values) {
  Floats loaded;
  std::memcpy(&loaded, values, sizeof loaded);
  return loaded;
}

}  // namespace

float log_sum_over(std::span<const float> logits, float highest) {
  constexpr std::size_t kStep = kLanes * kChains;
  // Groups are summed as floats and added up as doubles: 150,000 small addends would lose digits.
  constexpr std::size_t kGroup = 64 * kStep;
  const float* const values = logits.data();
  const auto whole = logits.size() / kStep * kStep;
  double total = 0;
  for (std::size_t start = 0; start < whole; start += kGroup) {
    std::array<Floats, kChains> sums{};
    const auto end = std::min(whole, start + kGroup);
    for (std::size_t at = start; at < end; at += kStep) {
      for (std::size_t chain = 0; chain < kChains; ++chain) {
        sums[chain] += exp_of(load(values + at + chain * kLanes) - highest);
      }
    }
    for (const Floats& sum : sums) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) total += static_cast<double>(sum[lane]);
    }
  }
  for (std::size_t at = whole; at < logits.size(); ++at) {
    total += std::exp(static_cast<double>(values[at]) - static_cast<double>(highest));
  }
  return static_cast<float>(std::log(total));
}

}  // namespace berth::worker
