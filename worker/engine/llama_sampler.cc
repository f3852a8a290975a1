#include "worker/engine/llama_sampler.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "worker/engine/best_logit.h"
#include "worker/engine/fixed_seed.h"

namespace berth::worker {

static_assert(LLAMA_DEFAULT_SEED == kRandomSeed);

Result<std::unique_ptr<Sampler>> LlamaSampler::make(const llama_vocab* vocabulary,
                                                    const SamplingSettings& settings) {
  if (settings.temperature == 0) return std::unique_ptr<Sampler>(new LlamaSampler(nullptr));
  const auto vocabulary_size = static_cast<std::uint32_t>(llama_vocab_n_tokens(vocabulary));
  auto parameters = llama_sampler_chain_default_params();
  parameters.no_perf = true;
  SamplerPointer chain(llama_sampler_chain_init(parameters));
  // The order of llama.cpp: cut first, then heat what is left.
  if (settings.top_k > 0) {
    const auto top_k = std::min(settings.top_k, vocabulary_size);
    llama_sampler_chain_add(chain.get(),
                            llama_sampler_init_top_k(static_cast<std::int32_t>(top_k)));
  }
  if (settings.top_p < 1) {
    llama_sampler_chain_add(chain.get(), llama_sampler_init_top_p(settings.top_p, 1));
  }
  llama_sampler_chain_add(chain.get(), llama_sampler_init_temp(settings.temperature));
  llama_sampler_chain_add(chain.get(), llama_sampler_init_dist(fixed_seed(settings.seed)));
  return std::unique_ptr<Sampler>(new LlamaSampler(std::move(chain)));
}

void LlamaSampler::accept_prompt(std::span<const TokenId> /*tokens*/) {}

Result<SampledToken> LlamaSampler::choose(std::span<float> logits,
                                          std::vector<llama_token_data>& scratch) {
  const auto best = best_logit(logits);
  if (!best) {
    return fail(Reason::kInternal,
                "The model computed no usable probabilities (NaN or infinite). Its file may be "
                "damaged, or its weights need another KV type or flash attention off.");
  }
  SampledToken chosen;
  if (!chain_) {
    chosen.token = static_cast<TokenId>(*best);
    return chosen;
  }
  scratch.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    scratch[i] = llama_token_data{static_cast<llama_token>(i), logits[i], 0.0F};
  }
  llama_token_data_array array{scratch.data(), scratch.size(), -1, false};
  try {
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected < 0 || static_cast<std::size_t>(array.selected) >= array.size) {
      return fail(Reason::kInternal, "The sampler chose no token.");
    }
    chosen.token = array.data[array.selected].id;
    llama_sampler_accept(chain_.get(), chosen.token);
    return chosen;
  } catch (const std::exception& problem) {
    return fail(Reason::kInternal, std::string("The sampler failed: ") + problem.what());
  }
}

}  // namespace berth::worker
