#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "tests/simulation/random.h"

namespace berth::stress {

using sim::Random;

// Between both, included; small numbers are as likely as large ones (even over the number of bits).
inline std::uint64_t any_size(Random& random, std::uint64_t low, std::uint64_t high) {
  const auto bits = static_cast<std::uint64_t>(std::bit_width(high - low));
  const auto wanted = random.between(0, bits);
  const auto most = wanted >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << wanted) - 1;
  const auto reach = most < high - low ? most : high - low;
  return low + (reach == ~std::uint64_t{0} ? random.next() : random.below(reach + 1));
}

// 0 to 1, without 1.
inline float fraction(Random& random) {
  constexpr std::uint64_t kSteps = 1U << 24U;
  return static_cast<float>(random.below(kSteps)) / static_cast<float>(kSteps);
}

template <typename T>
T one_of(Random& random, std::initializer_list<T> choices) {
  return choices.begin()[random.below(choices.size())];
}
inline std::string_view one_text(Random& random, std::initializer_list<std::string_view> choices) {
  return one_of<std::string_view>(random, choices);
}

}  // namespace berth::stress
