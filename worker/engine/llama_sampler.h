#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/engine/llama_handles.h"

namespace berth::worker {

// A chain of libllama's samplers for one generation.
class LlamaSampler final : public Sampler {
 public:
  // Errors: kInvalidArgument where libllama refuses the grammar.
  static Result<std::unique_ptr<Sampler>> make(const llama_vocab* vocabulary,
                                               const SamplingSettings& settings);

  void accept_prompt(std::span<const TokenId> tokens) override;

  // Chooses from the model's outputs, one per token of the vocabulary, which it may change.
  // `scratch` is kept between calls. Errors: as Engine::sample().
  Result<SampledToken> choose(std::span<float> logits, std::vector<llama_token_data>& scratch);

 private:
  explicit LlamaSampler(SamplerPointer chain) : chain_(std::move(chain)) {}

  SamplerPointer chain_;  // null: greedy
};

}  // namespace berth::worker
