#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/generation.h"

namespace berth::core {

// Vectors of texts, as the supervisor knows them, free of any protocol's types.

// Names of control tokens in a text are text.
using EmbedInput = std::variant<PromptInput, TokenInput>;

struct EmbedRequest {
  std::string request_id{};
  std::string user{};  // subdivides the caller's tenant; at most 256 bytes
  std::string model{};
  std::vector<EmbedInput> inputs{};  // 1 to 2048
  bool normalize = true;             // each vector gets the Euclidean length 1
  // The first so many numbers of each; absent: all.
  std::optional<std::uint32_t> dimensions{};
};

struct Embedding {
  std::vector<float> values;
  std::uint32_t tokens = 0;  // of its input
};
struct Embeddings {
  std::vector<Embedding> embeddings;  // in the order of the inputs
  std::uint32_t prompt_tokens = 0;
};

}  // namespace berth::core
