#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/engine/engine.h"

namespace berth::worker {

// Loads a model into this process: of tests/models by its file's name, or by an absolute path. A
// file that this process has loaded before is not loaded again. Fails the test and throws where it
// cannot be loaded.
Engine& loaded(const std::string& model);

// Writes a model with random weights (vocabulary of `size` tokens) to a file that lives as long as
// the process, and loads it.
Engine& loaded_random(const std::string& tokenizer, std::uint32_t size);

struct Generation {
  std::vector<SampledToken> tokens;  // the end token with them
  std::string text;
  bool ended = false;          // by a token of the model
  std::optional<Error> error;  // of the sampler, or of making it
};

// Generates up to `most` tokens behind a prompt, in sequence 0 from its beginning.
Generation generate(Engine& engine, const SamplingSettings& settings, std::string_view prompt,
                    std::size_t most);

// A turn of ChatML that tinychat answers.
std::string chat(std::string_view question);

}  // namespace berth::worker
