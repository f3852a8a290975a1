#pragma once

#include <functional>

#include "common/result.h"
#include "worker/engine/engine.h"

namespace berth::worker {

// Proves that the engine works (L6): computes one token and samples the next
// one, or its embedding. Context thread,
// before anything else runs there; leaves the context empty. `cancelled` is asked within the batch.
// Errors: what the engine said.
Status prove(Engine& engine, std::function<bool()> cancelled);

}  // namespace berth::worker
