#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace berth::core {

// How many compute threads each of the workers that compute at this moment may use, so that all
// together never have more than there are cores: with more threads than cores they wait for each
// other's time slices at every step, and a model becomes tens of times slower. `wanted` are the
// threads that each would use alone, at least 1. Fair: nobody gets more than another one who wants
// more, except for what does not divide evenly, which goes to the first. With more workers than
// cores each gets one.
std::vector<std::uint32_t> share_threads(std::uint32_t cores,
                                         std::span<const std::uint32_t> wanted);

}  // namespace berth::core
