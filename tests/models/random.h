#pragma once

#include <cstdint>
#include <string_view>

#include "tests/split_mix.h"

namespace berth::test_models {

// The source of random weights: the same seed gives the same bytes. A value.
class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;

  // In [-1, 1).
  float uniform() {
    return static_cast<float>(static_cast<std::int32_t>(next() >> 40U)) * 0x1p-23F - 1.0F;
  }
};

// FNV-1a.
inline std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3ULL;
  }
  return hash;
}

}  // namespace berth::test_models
