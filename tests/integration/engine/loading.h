#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "tests/models/random_model.h"
#include "worker/engine/engine.h"

namespace berth::worker {

using Loaded = tl::expected<std::unique_ptr<Engine>, LoadFailure>;

// Loads into this process, with one thread unless the settings say otherwise.
Loaded load(EngineSettings settings);
// Ditto; the test fails and throws where it cannot be loaded.
std::unique_ptr<Engine> load_well(EngineSettings settings);
// Why it cannot be loaded; the test fails where it can.
LoadFailure failure_of(EngineSettings settings);

// A new file in a directory that is removed when the process ends.
std::string scratch_file(const std::string& name);
// Writes a model with random weights to a file of its own, and returns its path.
std::string random_file(const test_models::ModelOptions& options);

// The first `count` tokens of greedy decoding in `sequence`, behind what it holds and `prompt`.
std::vector<TokenId> greedy(Engine& engine, SequenceId sequence, std::uint32_t position,
                            const std::vector<TokenId>& prompt, std::size_t count);

// Tokens that mean nothing: `count` of them, others for another seed.
std::vector<TokenId> some_tokens(std::size_t count, std::uint32_t seed = 1);

}  // namespace berth::worker
