#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "tests/split_mix.h"

namespace berth::sim {

// The one source of chance of a simulation (SplitMix64): the same seed gives the same run on every
// machine. A value.
class Random : public SplitMix64 {
 public:
  using SplitMix64::SplitMix64;

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
};

}  // namespace berth::sim
