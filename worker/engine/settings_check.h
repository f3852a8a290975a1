#pragma once

#include <cstdint>

#include "common/result.h"
#include "worker/engine/sampling.h"

namespace berth::worker {

// Whether libllama's samplers can work with these settings: outside of these ranges some of them
// compute with NaN, index out of bounds, allocate without a bound, or draw nothing. What a client
// may ask for is checked before, with the client's names; this is the last guard in front of the
// library. Errors: kInvalidArgument, names the setting and its range.
Status check_settings(const SamplingSettings& settings, std::uint32_t vocabulary);

}  // namespace berth::worker
