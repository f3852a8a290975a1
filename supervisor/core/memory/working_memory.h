#pragma once

#include <cstdint>

#include "supervisor/core/memory/cost_model.h"
#include "supervisor/core/memory/model_shape.h"

namespace berth::core {

// What one context of libllama is made with.
struct ContextShape {
  std::uint32_t cells = 0;         // of the pool; a multiple of 256
  std::uint32_t window_cells = 0;  // of layers with a sliding window
  std::uint32_t sequences = 1;
  std::uint32_t micro_batch = 512;  // tokens that are computed at once
  std::uint32_t outputs = 1;        // tokens of them that have an output
  std::uint32_t kv_type = 1;        // a ggml_type
  bool flash_attention = true;
  bool embeds = false;

  bool operator==(const ContextShape&) const = default;
};

// The context that the worker makes (worker/engine/llama_engine.cc, llama_drafter.cc).
ContextShape context_shape(const ModelShape& shape, const ServeShape& serve, bool is_draft,
                           bool has_draft);

// Bytes of what is allocated for computing; the parts of PartCost of that name.
struct WorkingMemory {
  std::uint64_t host = 0;
  std::uint64_t input = 0;
  std::uint64_t device = 0;
  std::uint64_t inputs = 0;  // of one computation: masks, and what the embedding gives
};
// Fitted to what libllama reports for the models of docs/memory.md: the largest of what is alive at
// once in a layer, or at the output, and the masks of attention.
WorkingMemory working_memory(const ModelShape& shape, const ContextShape& context);

}  // namespace berth::core
