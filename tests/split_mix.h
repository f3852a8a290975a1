#pragma once

#include <cstdint>

namespace berth {

// SplitMix64: small, fast, and the same everywhere. Source: Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014. A value.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace berth
