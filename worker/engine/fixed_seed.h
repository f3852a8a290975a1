#pragma once

#include <cstdint>

namespace berth::worker {

// The seed that libllama takes for "draw one at random" (LLAMA_DEFAULT_SEED).
constexpr std::uint32_t kRandomSeed = 0xFFFFFFFF;

// A seed for libllama that is repeatable whatever `seed` is: another constant stands for the one
// value that would be random.
constexpr std::uint32_t fixed_seed(std::uint32_t seed) {
  constexpr std::uint32_t kStandIn = 0x5EED5EED;
  return seed == kRandomSeed ? kStandIn : seed;
}

}  // namespace berth::worker
