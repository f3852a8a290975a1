#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace berth::worker {

using TokenId = std::int32_t;

// How the next token is chosen. The defaults are llama.cpp's. Every number is finite; ranges are
// checked where a request comes in (service/sampling_check), and once more by check_settings().
struct SamplingSettings {
  float temperature = 0.8F;  // 0 = greedy
  // Dynamic temperature: temperature +- range, by the entropy of what may come; 0 = off.
  float dynamic_temperature_range = 0;
  float dynamic_temperature_exponent = 1;

  std::uint32_t top_k = 40;  // 0 = off
  float top_p = 0.95F;       // 1 = off
  float min_p = 0.05F;       // 0 = off
  float typical_p = 1;       // 1 = off
  float top_n_sigma = -1;    // at most 0 = off
  float xtc_probability = 0;
  float xtc_threshold = 0.1F;  // above 0.5 = off

  // Over the last `penalty_last_tokens` tokens, of the prompt too; 0 = off.
  std::uint32_t penalty_last_tokens = 64;
  float repetition_penalty = 1;  // 1 = off
  float frequency_penalty = 0;
  float presence_penalty = 0;

  float dry_multiplier = 0;  // 0 = off
  float dry_base = 1.75F;
  std::uint32_t dry_allowed_length = 2;
  std::uint32_t dry_last_tokens = std::numeric_limits<std::uint32_t>::max();  // all of the context
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};

  std::uint32_t mirostat = 0;  // 0 off, 1, 2; replaces the cuts above
  float mirostat_tau = 5;
  float mirostat_eta = 0.1F;

  std::vector<std::pair<TokenId, float>> logit_bias;  // -infinity bans a token
  bool ignore_eos = false;                            // tokens that end an answer are banned
  std::string grammar;                                // GBNF with the rule `root`; empty: none
  // Where not empty, the grammar applies only from the text on that follows the first of these.
  std::vector<std::string> grammar_triggers;

  std::uint32_t seed = 0;  // the same seed and the same batches give the same text

  // Log probabilities of the chosen token and of so many of the likeliest besides; nothing: none.
  // They are those of the model, before temperature and cuts.
  std::optional<std::uint32_t> top_logprobs;
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural logarithm
};

// A chosen token.
struct SampledToken {
  TokenId token = 0;
  // Set where SamplingSettings::top_logprobs is.
  float logprob = 0;
  std::vector<TokenLogprob> top;  // the likeliest first
};

}  // namespace berth::worker
