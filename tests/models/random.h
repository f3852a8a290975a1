#pragma once

#include <cstdint>
#include <string_view>

namespace berth::test_models {

// SplitMix64: small, fast, and the same everywhere. Source: Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31U);
  }

  // In [-1, 1).
  float uniform() {
    return static_cast<float>(static_cast<std::int32_t>(next() >> 40U)) * 0x1p-23F - 1.0F;
  }

 private:
  std::uint64_t state_;
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
