#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "supervisor/core/memory/saturating.h"

namespace berth::core {

// What processes that are not ours use of a domain, and of our own what no charge counts (M3). All
// bytes; pure. Readings are taken one after the other, so that the parts may exceed the whole: then
// nothing is foreign.

// `ours`: anonymous and other shared memory of all our processes. `bank`: what the RAM tier has
// allocated, mapped or not. Clean pages of weights that are mapped from a file count as available.
constexpr std::uint64_t foreign_of_host(std::uint64_t total, std::uint64_t available,
                                        std::uint64_t ours, std::uint64_t bank) {
  const std::uint64_t used = total - std::min(total, available);
  return used - std::min(used, saturating_add(ours, bank));
}

// `by_process`: what the driver says of our processes; absent where it does not say, or counts them
// by the numbers of another namespace. `by_report`: what our workers say that they allocated there.
constexpr std::uint64_t foreign_of_device(std::uint64_t used,
                                          std::optional<std::uint64_t> by_process,
                                          std::uint64_t by_report) {
  return used - std::min(used, std::max(by_process.value_or(0), by_report));
}

}  // namespace berth::core
