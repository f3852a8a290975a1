#pragma once

#include <cstdint>
#include <functional>

#include "common/result.h"
#include "worker/engine/engine.h"

namespace berth::worker {

enum class Proof : std::uint8_t {
  kOneToken,
  kMicroBatch,  // as many tokens as are ever computed at once: shows the most memory that it takes
};

// Proves that the engine works (L6): computes one token, or a full micro-batch of it, and samples
// the next one, or computes their embedding. Context thread, before anything else runs there;
// leaves the context empty. `cancelled` is asked within the batch. Errors: what the engine said.
Status prove(Engine& engine, Proof proof, std::function<bool()> cancelled);

}  // namespace berth::worker
