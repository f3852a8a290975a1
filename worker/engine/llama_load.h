#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "worker/engine/engine.h"

namespace berth::worker {

// Loads a model and makes its context, on the calling thread, which becomes its context thread:
// backends by placement, weights, adapters, the draft model, the contexts. Writes libllama's log to
// stderr. One engine per process. No exception leaves it.
tl::expected<std::unique_ptr<Engine>, LoadFailure> load_llama_engine(const EngineSettings& settings,
                                                                     LoadObserver& observer);

// Versions and build ids of this program and libllama, one line; also without a loaded backend.
std::string llama_build_id();

}  // namespace berth::worker
