#pragma once

#include <cstdint>

#include "berth/v1/inference.pb.h"
#include "tests/stress/chance.h"

namespace berth::stress {

// Settings within the ranges that inference.proto gives, up to their ends.
v1::Sampling random_sampling(Random& random, std::uint32_t vocabulary);

// Makes one thing of it wrong: a number out of its range, NaN or infinite, too many biases or
// breakers, a token twice, one that does not exist.
void spoil_sampling(Random& random, std::uint32_t vocabulary, v1::Sampling& sampling);

}  // namespace berth::stress
