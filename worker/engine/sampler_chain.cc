#include "worker/engine/sampler_chain.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "worker/engine/fixed_seed.h"

namespace berth::worker {
namespace {

static_assert(LLAMA_DEFAULT_SEED == kRandomSeed);

// Outputs are divided by it: with less, those of a model would become infinite.
constexpr float kLeastRepetitionPenalty = 1e-3F;
constexpr std::size_t kKeep = 1;  // tokens that every cut leaves
constexpr std::int32_t kMirostatTokens =
    100;  // that its first version estimates from, as its paper

SamplerPointer make_chain() {
  auto parameters = llama_sampler_chain_default_params();
  parameters.no_perf = true;
  return SamplerPointer(llama_sampler_chain_init(parameters));
}

bool has_penalties(const SamplingSettings& settings) {
  return settings.penalty_last_tokens > 0 &&
         (settings.repetition_penalty != 1 || settings.frequency_penalty != 0 ||
          settings.presence_penalty != 0);
}

bool has_dry(const SamplingSettings& settings) {
  return settings.dry_multiplier > 0 && settings.dry_last_tokens > 0;
}

std::int32_t clamped(std::uint32_t count, std::uint32_t most) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::min({count, most, kMost}));
}

// Removes what can never be drawn, as its probability is 0 as a float. The typical cut takes the
// logarithm of every probability and computes with NaN then, and XTC keeps the least likely token
// above its threshold, which with a threshold of 0 could be one that is banned.
void remove_impossible(llama_sampler* /*sampler*/, llama_token_data_array* array) {
  constexpr float kReach = 80;  // e^-80 is still a normal float
  float highest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < array->size; ++i) highest = std::max(highest, array->data[i].logit);
  const auto* const end = std::remove_if(
      array->data, array->data + array->size,
      [&](const llama_token_data& candidate) { return !(candidate.logit >= highest - kReach); });
  array->size = static_cast<std::size_t>(end - array->data);
}

// Makes the highest logit 0: a tiny dynamic temperature then makes no infinity of it.
void shift_to_zero(llama_sampler* /*sampler*/, llama_token_data_array* array) {
  float highest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < array->size; ++i) highest = std::max(highest, array->data[i].logit);
  for (std::size_t i = 0; i < array->size; ++i) array->data[i].logit -= highest;
}

template <void (*kApply)(llama_sampler*, llama_token_data_array*)>
llama_sampler* make_own() {
  static llama_sampler_i interface = [] {
    llama_sampler_i functions{};
    functions.name = [](const llama_sampler* /*sampler*/) { return "berth"; };
    functions.apply = kApply;
    return functions;
  }();
  return llama_sampler_init(&interface, nullptr);
}

void add_cuts(llama_sampler* chain, const SamplingSettings& settings) {
  if (settings.top_n_sigma > 0) {
    llama_sampler_chain_add(chain, llama_sampler_init_top_n_sigma(settings.top_n_sigma));
  }
  if (settings.top_k > 0 && !starts_with_top_k(settings)) {
    const auto top_k = clamped(settings.top_k, std::numeric_limits<std::int32_t>::max());
    llama_sampler_chain_add(chain, llama_sampler_init_top_k(top_k));
  }
  if (settings.typical_p < 1) {
    llama_sampler_chain_add(chain, make_own<&remove_impossible>());
    llama_sampler_chain_add(chain, llama_sampler_init_typical(settings.typical_p, kKeep));
  }
  if (settings.top_p < 1) {
    llama_sampler_chain_add(chain, llama_sampler_init_top_p(settings.top_p, kKeep));
  }
  if (settings.min_p > 0) {
    llama_sampler_chain_add(chain, llama_sampler_init_min_p(settings.min_p, kKeep));
  }
  if (has_xtc(settings)) {
    llama_sampler_chain_add(chain, make_own<&remove_impossible>());
    llama_sampler_chain_add(
        chain, llama_sampler_init_xtc(settings.xtc_probability, settings.xtc_threshold, kKeep,
                                      fixed_seed(settings.seed)));
  }
}

void add_temperature(llama_sampler* chain, const SamplingSettings& settings) {
  if (settings.dynamic_temperature_range <= 0 || settings.mirostat != 0) {
    llama_sampler_chain_add(chain, llama_sampler_init_temp(settings.temperature));
    return;
  }
  llama_sampler_chain_add(chain, make_own<&shift_to_zero>());
  llama_sampler_chain_add(
      chain, llama_sampler_init_temp_ext(settings.temperature, settings.dynamic_temperature_range,
                                         settings.dynamic_temperature_exponent));
}

}  // namespace

std::vector<std::pair<TokenId, float>> all_biases(const llama_vocab* vocabulary,
                                                  const SamplingSettings& settings) {
  auto biases = settings.logit_bias;
  if (!settings.ignore_eos) return biases;
  const TokenId count = llama_vocab_n_tokens(vocabulary);
  for (TokenId token = 0; token < count; ++token) {
    if (llama_vocab_is_eog(vocabulary, token))
      biases.emplace_back(token, -std::numeric_limits<float>::infinity());
  }
  return biases;
}

std::uint32_t penalty_window(const SamplingSettings& settings, std::uint32_t context) {
  std::uint32_t window = 0;
  if (has_penalties(settings)) window = std::min(settings.penalty_last_tokens, context);
  if (has_dry(settings)) window = std::max(window, std::min(settings.dry_last_tokens, context));
  return window;
}

SamplerPointer make_penalties(const llama_vocab* vocabulary, std::uint32_t context,
                              const SamplingSettings& settings, DryCache* dry) {
  if (!has_penalties(settings) && !has_dry(settings)) return nullptr;
  auto chain = make_chain();
  if (has_penalties(settings)) {
    llama_sampler_chain_add(
        chain.get(),
        llama_sampler_init_penalties(llama_vocab_n_tokens(vocabulary),
                                     clamped(settings.penalty_last_tokens, context),
                                     std::max(settings.repetition_penalty, kLeastRepetitionPenalty),
                                     settings.frequency_penalty, settings.presence_penalty));
  }
  if (has_dry(settings)) {
    const DrySettings wanted{settings.dry_multiplier, settings.dry_base,
                             clamped(settings.dry_allowed_length, context),
                             clamped(settings.dry_last_tokens, context), settings.dry_breakers};
    auto made = dry != nullptr ? dry->make(vocabulary, wanted) : make_dry(vocabulary, wanted);
    llama_sampler_chain_add(chain.get(), made.release());
  }
  return chain;
}

SamplerPointer make_choice(const llama_vocab* vocabulary, const SamplingSettings& settings) {
  auto chain = make_chain();
  const auto seed = fixed_seed(settings.seed);
  if (settings.mirostat == 0) add_cuts(chain.get(), settings);
  if (is_greedy(settings)) {
    llama_sampler_chain_add(chain.get(), llama_sampler_init_greedy());
    return chain;
  }
  add_temperature(chain.get(), settings);
  llama_sampler* last = nullptr;
  switch (settings.mirostat) {
    case 1:
      last =
          llama_sampler_init_mirostat(llama_vocab_n_tokens(vocabulary), seed, settings.mirostat_tau,
                                      settings.mirostat_eta, kMirostatTokens);
      break;
    case 2:
      last = llama_sampler_init_mirostat_v2(seed, settings.mirostat_tau, settings.mirostat_eta);
      break;
    default:
      last = llama_sampler_init_dist(seed);
  }
  llama_sampler_chain_add(chain.get(), last);
  return chain;
}

}  // namespace berth::worker
