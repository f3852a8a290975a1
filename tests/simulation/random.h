#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"

namespace berth::sim {

// The one source of chance of a simulation (SplitMix64): the same seed gives the same run on every
// machine. A value.
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
  // 0 to bound - 1; bound at least 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool percent(std::uint64_t chance) { return below(100) < chance; }
  // Both included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  Duration between(Duration low, Duration high) {
    return low + Duration(static_cast<Duration::rep>(
                     below(static_cast<std::uint64_t>((high - low).count()) + 1)));
  }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }
  // An independent stream.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace berth::sim
