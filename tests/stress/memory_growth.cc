#include "tests/stress/memory_growth.h"

#include <algorithm>

namespace berth::stress {

MemoryGrowth::MemoryGrowth(Time run) : warm_up_(std::min(kLongestWarmUp, run / 3)) {}

void MemoryGrowth::look(std::chrono::nanoseconds since_begin, std::uint64_t kib) {
  if (!warm_kib_ && since_begin >= warm_up_) warm_kib_ = kib;
}

std::optional<std::string> MemoryGrowth::problem(std::uint64_t kib) const {
  if (!warm_kib_ || kib <= *warm_kib_ + *warm_kib_ / 2 + kAllowedKib) return std::nullopt;
  return "memory grew from " + std::to_string(*warm_kib_) + " to " + std::to_string(kib) + " KiB";
}

}  // namespace berth::stress
