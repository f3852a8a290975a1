#include "worker/engine/llama_embedder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace berth::worker {

std::string LlamaEmbedder::refusal(std::span<const std::vector<TokenId>> inputs) const {
  std::size_t total = 0;
  for (const auto& input : inputs) {
    total += input.size();
    if (input.empty()) return "an input without tokens";
    if (input.size() > window_) return "an input of " + std::to_string(input.size()) + " tokens";
  }
  if (inputs.empty() || inputs.size() > llama_n_seq_max(context_)) {
    return "a batch of " + std::to_string(inputs.size()) + " inputs";
  }
  if (total > batch_.capacity()) return "a batch of " + std::to_string(total) + " tokens";
  return {};
}

void LlamaEmbedder::forget() {
  if (auto* const memory = llama_get_memory(context_)) llama_memory_clear(memory, false);
}

DecodeOutcome LlamaEmbedder::embed(std::span<const std::vector<TokenId>> inputs,
                                   std::vector<std::vector<float>>& out, std::string& error) {
  out.clear();
  if (error = refusal(inputs); !error.empty()) return DecodeOutcome::kFailed;
  batch_.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t position = 0; position < inputs[i].size(); ++position) {
      batch_.add({static_cast<SequenceId>(i), inputs[i][position],
                  static_cast<std::uint32_t>(position), true});
    }
  }
  const auto outcome = batch_.compute(context_, error);
  if (outcome == DecodeOutcome::kDone) {
    const auto size = static_cast<std::size_t>(llama_model_n_embd_out(llama_get_model(context_)));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const float* const values = llama_get_embeddings_seq(context_, static_cast<llama_seq_id>(i));
      const std::span<const float> embedding(values, values == nullptr ? 0 : size);
      const bool usable =
          !embedding.empty() && std::all_of(embedding.begin(), embedding.end(),
                                            [](float value) { return std::isfinite(value); });
      auto& vector = out.emplace_back();
      if (usable) vector.assign(embedding.begin(), embedding.end());
    }
  }
  forget();
  return outcome;
}

}  // namespace berth::worker
