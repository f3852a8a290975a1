#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "worker/engine/dry_cache.h"
#include "worker/engine/llama_handles.h"
#include "worker/engine/sampling.h"

namespace berth::worker {

// libllama's samplers for settings that check_settings() accepts, in llama.cpp's default order.
// Their functions may throw.

// Below this, temperatures would make infinities of a model's outputs; there, as at 0, the
// likeliest token is chosen.
constexpr float kLeastTemperature = 1e-3F;

constexpr bool is_greedy(const SamplingSettings& settings) {
  return settings.temperature < kLeastTemperature;
}
constexpr bool has_xtc(const SamplingSettings& settings) {
  return settings.xtc_probability > 0 && settings.xtc_threshold <= 0.5F;
}
// Whether a greedy choice may be another token than the likeliest: other cuts keep that one.
constexpr bool cuts_the_likeliest(const SamplingSettings& settings) {
  return settings.mirostat == 0 && (settings.typical_p < 1 || has_xtc(settings));
}
// Whether the first thing that looks at all tokens is the cut to the top_k likeliest.
constexpr bool starts_with_top_k(const SamplingSettings& settings) {
  return settings.mirostat == 0 && settings.top_k > 0 && settings.top_n_sigma <= 0;
}

// What is added to the outputs of single tokens; -infinity bans one.
std::vector<std::pair<TokenId, float>> all_biases(const llama_vocab* vocabulary,
                                                  const SamplingSettings& settings);

// Tokens before the present one that penalties (DRY too) look at; 0: there are none.
std::uint32_t penalty_window(const SamplingSettings& settings, std::uint32_t context);

// The penalties and DRY: what changes single outputs. Null where there are none. Where a token is
// not given to it, it changes nothing for that token. `context`: tokens that a sequence can have.
// `dry` may be null.
SamplerPointer make_penalties(const llama_vocab* vocabulary, std::uint32_t context,
                              const SamplingSettings& settings, DryCache* dry);

// All cuts, the temperature and the choice itself; without the cut to top_k where
// starts_with_top_k(): the caller gives it only those.
SamplerPointer make_choice(const llama_vocab* vocabulary, const SamplingSettings& settings);

}  // namespace berth::worker
