#pragma once

#include <cstdint>

namespace berth::core {

// Sums and products that stay at the greatest number instead of wrapping: what a hostile file
// claims must never look small.
constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
constexpr std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) {
  return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

}  // namespace berth::core
