#pragma once

#include <span>
#include <string>
#include <vector>

#include "llama.h"
#include "worker/engine/engine.h"
#include "worker/engine/llama_context.h"

namespace berth::worker {

// Computes embeddings with a context that was made for them (`embeddings`, a pooling type, and
// micro-batches as long as batches, so that no input is cut in two). Context thread; the context
// outlives it.
class LlamaEmbedder {
 public:
  // `most_tokens` of one batch, of which one input may have `window`.
  LlamaEmbedder(llama_context* context, std::uint32_t most_tokens, std::uint32_t window)
      : context_(context), batch_(most_tokens), window_(window) {}

  // As Engine::embed(). Embeddings are as the model gives them, not normalised.
  DecodeOutcome embed(std::span<const std::vector<TokenId>> inputs,
                      std::vector<std::vector<float>>& out, std::string& error);

 private:
  // Why the inputs cannot be one batch; empty: they can.
  [[nodiscard]] std::string refusal(std::span<const std::vector<TokenId>> inputs) const;
  void forget();

  llama_context* context_;
  LlamaBatch batch_;
  std::uint32_t window_;
};

}  // namespace berth::worker
