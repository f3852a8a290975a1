#include "worker/service/sampling_check.h"

#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "worker/service/invalid_argument.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

constexpr int kMaxBiases = 4096;
constexpr float kMaxBias = 100;
constexpr int kMaxBreakers = 16;
constexpr std::size_t kMaxBreakerBytes = 40;
constexpr std::uint32_t kMirostatVersions = 2;

// What a number may be. NaN is in no range.
struct Range {
  float low;
  float high;
  bool above_low = false;  // `low` itself is not in it
  [[nodiscard]] bool has(float value) const {
    return value <= high && (above_low ? value > low : value >= low);
  }
  [[nodiscard]] std::string text() const {
    return above_low ? "above " + number_text(low) + " and at most " + number_text(high)
                     : "from " + number_text(low) + " to " + number_text(high);
  }
};

constexpr Range kToHundred{0, 100};
constexpr Range kAboveZeroToHundred{0, 100, true};
constexpr Range kToOne{0, 1};
constexpr Range kAboveZeroToOne{0, 1, true};
constexpr Range kPenalty{-2, 2};
constexpr Range kDryBase{1, 100};

// One field of floating point: how to read it, what it may be, and where it goes.
struct NumberField {
  std::string_view name;
  bool (v1::Sampling::*has)() const;
  float (v1::Sampling::*get)() const;
  Range range;
  float SamplingSettings::*to;
};

using S = v1::Sampling;
using T = SamplingSettings;
constexpr NumberField kNumbers[] = {
    {"temperature", &S::has_temperature, &S::temperature, kToHundred, &T::temperature},
    {"top_p", &S::has_top_p, &S::top_p, kAboveZeroToOne, &T::top_p},
    {"min_p", &S::has_min_p, &S::min_p, kToOne, &T::min_p},
    {"typical_p", &S::has_typical_p, &S::typical_p, kAboveZeroToOne, &T::typical_p},
    {"top_n_sigma", &S::has_top_n_sigma, &S::top_n_sigma, kToHundred, &T::top_n_sigma},
    {"xtc_probability", &S::has_xtc_probability, &S::xtc_probability, kToOne, &T::xtc_probability},
    {"xtc_threshold", &S::has_xtc_threshold, &S::xtc_threshold, kToOne, &T::xtc_threshold},
    {"dynamic_temperature_range", &S::has_dynamic_temperature_range, &S::dynamic_temperature_range,
     kToHundred, &T::dynamic_temperature_range},
    {"dynamic_temperature_exponent", &S::has_dynamic_temperature_exponent,
     &S::dynamic_temperature_exponent, kAboveZeroToHundred, &T::dynamic_temperature_exponent},
    {"repetition_penalty", &S::has_repetition_penalty, &S::repetition_penalty, kAboveZeroToHundred,
     &T::repetition_penalty},
    {"presence_penalty", &S::has_presence_penalty, &S::presence_penalty, kPenalty,
     &T::presence_penalty},
    {"frequency_penalty", &S::has_frequency_penalty, &S::frequency_penalty, kPenalty,
     &T::frequency_penalty},
    {"dry_multiplier", &S::has_dry_multiplier, &S::dry_multiplier, kToHundred, &T::dry_multiplier},
    {"dry_base", &S::has_dry_base, &S::dry_base, kDryBase, &T::dry_base},
    {"mirostat_tau", &S::has_mirostat_tau, &S::mirostat_tau, kToHundred, &T::mirostat_tau},
    {"mirostat_eta", &S::has_mirostat_eta, &S::mirostat_eta, kAboveZeroToOne, &T::mirostat_eta},
};

std::uint32_t random_seed() {
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = std::random_device{}();
  return seed;
}

Status check_numbers(const v1::Sampling& sampling, SamplingSettings& out) {
  for (const auto& field : kNumbers) {
    if (!(sampling.*field.has)()) continue;
    const float value = (sampling.*field.get)();
    if (!field.range.has(value)) {
      return out_of_range("sampling." + std::string(field.name), field.range.text(),
                          number_text(value));
    }
    out.*field.to = value;
  }
  return {};
}

// libllama has signed numbers; what is more than there can be is all that there can be.
Status check_counts(const v1::Sampling& sampling, const SamplingBounds& bounds,
                    SamplingSettings& out) {
  if (sampling.has_top_k()) out.top_k = std::min(sampling.top_k(), bounds.vocabulary);
  if (sampling.has_penalty_last_tokens()) {
    out.penalty_last_tokens = std::min(sampling.penalty_last_tokens(), bounds.window);
  }
  if (sampling.has_dry_allowed_length()) {
    out.dry_allowed_length = std::min(sampling.dry_allowed_length(), bounds.window);
  }
  if (sampling.has_dry_last_tokens() && sampling.dry_last_tokens() < bounds.window) {
    out.dry_last_tokens = sampling.dry_last_tokens();
  }
  if (sampling.mirostat() > kMirostatVersions) {
    return out_of_range("sampling.mirostat", "0 (off), 1 or 2",
                        std::to_string(sampling.mirostat()));
  }
  out.mirostat = sampling.mirostat();
  return {};
}

Status check_breakers(const v1::Sampling& sampling, std::vector<std::string>& out) {
  if (sampling.dry_breakers_size() == 0) return {};
  if (sampling.dry_breakers_size() > kMaxBreakers) {
    return invalid_argument("sampling.dry_breakers",
                            "There are " + std::to_string(sampling.dry_breakers_size()) +
                                " sampling.dry_breakers; at most 16 are allowed.");
  }
  out.clear();
  for (int i = 0; i < sampling.dry_breakers_size(); ++i) {
    const auto& text = sampling.dry_breakers(i);
    const auto param = "sampling.dry_breakers[" + std::to_string(i) + "]";
    if (text.empty()) return invalid_argument(param, param + " is empty.");
    if (text.size() > kMaxBreakerBytes) {
      return invalid_argument(
          param, param + " has " + std::to_string(text.size()) + " bytes; at most 40 are allowed.");
    }
    if (auto checked = check_utf8(text, param); !checked) return checked;
    // libllama takes these texts up to their first NUL.
    if (text.find('\0') != std::string::npos)
      return invalid_argument(param, param + " has a NUL in it.");
    out.push_back(text);
  }
  return {};
}

Status check_biases(const v1::Sampling& sampling, const SamplingBounds& bounds,
                    SamplingSettings& out) {
  if (sampling.logit_bias_size() > kMaxBiases) {
    return invalid_argument("sampling.logit_bias",
                            "There are " + std::to_string(sampling.logit_bias_size()) +
                                " entries in sampling.logit_bias; at most 4096 are allowed.");
  }
  std::unordered_set<TokenId> seen;
  for (int i = 0; i < sampling.logit_bias_size(); ++i) {
    const auto& entry = sampling.logit_bias(i);
    const auto param = "sampling.logit_bias[" + std::to_string(i) + "]";
    if (entry.token() < 0 || static_cast<std::uint32_t>(entry.token()) >= bounds.vocabulary) {
      return out_of_range(
          param + ".token",
          "one of this model's tokens, 0 to " + std::to_string(bounds.vocabulary - 1),
          std::to_string(entry.token()));
    }
    if (!seen.insert(entry.token()).second) {
      return invalid_argument(param + ".token", param + ".token is " +
                                                    std::to_string(entry.token()) +
                                                    " once more; each token may have one bias.");
    }
    if (!std::isfinite(entry.bias()) || entry.bias() > kMaxBias) {
      return out_of_range(param + ".bias", "a number of at most 100 (-100 and less bans the token)",
                          number_text(entry.bias()));
    }
    const bool banned = entry.bias() <= -kMaxBias;
    out.logit_bias.emplace_back(entry.token(),
                                banned ? -std::numeric_limits<float>::infinity() : entry.bias());
  }
  return {};
}

}  // namespace

Result<SamplingSettings> check_sampling(const v1::Sampling& sampling,
                                        const SamplingBounds& bounds) {
  SamplingSettings out;
  if (auto checked = check_numbers(sampling, out); !checked) return fail(checked.error());
  if (auto checked = check_counts(sampling, bounds, out); !checked) return fail(checked.error());
  if (auto checked = check_breakers(sampling, out.dry_breakers); !checked) {
    return fail(checked.error());
  }
  if (auto checked = check_biases(sampling, bounds, out); !checked) return fail(checked.error());
  out.ignore_eos = sampling.ignore_eos();
  out.seed = sampling.has_seed() ? sampling.seed() : random_seed();
  return out;
}

}  // namespace berth::worker
