#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/gguf/gguf.h"
#include "common/result.h"

namespace berth::core {

// More layers than libllama takes (LLAMA_MAX_LAYERS, src/llama-hparams.h).
inline constexpr std::uint32_t kMaxLayers = 512;

// What one layer costs. Numbers are those of a GGUF's header, bounded.
struct LayerShape {
  std::uint64_t weights = 0;       // bytes of its tensors, as stored
  std::uint32_t heads = 0;         // of queries
  std::uint32_t keys = 0;          // numbers that a cell keeps of keys; 0: it keeps none
  std::uint32_t values = 0;        // ditto of values
  std::uint64_t state_bytes = 0;   // what each sequence keeps besides (recurrent layers)
  std::uint32_t feed_forward = 0;  // its width; of a mixture that of one expert
  bool gated = false;              // the feed-forward part has a gate as wide as itself
  bool windowed = false;           // its cells are those of a sliding window

  bool operator==(const LayerShape&) const = default;
};

// What of a model's headers decides what it costs in memory (M4). A value; some kilobytes.
struct ModelShape {
  std::string architecture;
  // Without those that libllama never loads.
  std::vector<LayerShape> layers;
  std::uint64_t largest_matrix = 0;  // bytes; of the layers' tensors
  std::uint64_t input_weights = 0;   // bytes that are in the host wherever the layers are
  std::uint64_t output_weights = 0;  // bytes of the output, which counts as one layer more
  // Of output_weights, what is the embedding's matrix once more (a tied output). In the host both
  // are one, unless ...
  std::uint64_t tied_output = 0;
  // ... the processor keeps the output's in an order of its own, in memory of its own.
  bool tied_repacks = false;
  std::uint64_t file_bytes = 0;        // of all files
  std::uint32_t embedding = 0;         // width
  std::uint64_t vocabulary = 0;        // tokens
  std::uint64_t merges = 0;            // of a BPE tokenizer
  std::uint32_t declared_context = 0;  // tokens; 0: not said
  std::uint32_t sliding_window = 0;    // tokens; of the windowed layers
  std::uint32_t experts_used = 0;      // of a mixture, for each token; 0: no mixture
  // Numbers for each token that computing a recurrent layer takes at once.
  std::uint64_t state_width = 0;
  bool encoder = false;  // reads all tokens at once and keeps nothing
  // libllama's way with this architecture is not known to us: cells are counted as if it were
  // common attention, and the error is larger.
  bool guessed = false;

  bool operator==(const ModelShape&) const = default;
};

// The shape of a model with these headers. Errors: kInvalidArgument where a number that decides the
// cost is missing, out of its bounds or contradicts another: which, and what it may be.
Result<ModelShape> model_shape(const gguf::WholeModel& model);

// What an adapter (LoRA) adds to the layers of its model: only weights are set, as many layers as
// it touches. Errors: kInvalidArgument.
Result<ModelShape> adapter_shape(const gguf::WholeModel& adapter);

}  // namespace berth::core
