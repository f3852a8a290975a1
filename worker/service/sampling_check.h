#pragma once

#include <cstdint>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/engine/sampling.h"

namespace berth::worker {

// What a model sets to the numbers of a request.
struct SamplingBounds {
  std::uint32_t vocabulary = 0;
  std::uint32_t window = 0;
};

// The protocol's sampling as the engine has it, with the protocol's defaults; the seed is random
// where the request has none. Numbers of tokens that say more than the window does mean all of it.
// Errors: kInvalidArgument with the field, its value and what was expected; NaN and infinities are
// refused in every field. Any thread.
Result<SamplingSettings> check_sampling(const v1::Sampling& sampling, const SamplingBounds& bounds);

}  // namespace berth::worker
