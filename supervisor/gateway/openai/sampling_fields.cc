#include <array>
#include <charconv>
#include <limits>

#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/text_fields.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;
using Sampling = core::Sampling;

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxBiases = 4096;
constexpr Range kBias{-100, 100};
// OpenAI takes a top_p of 0, which leaves only the likeliest token; the worker wants one above 0.
constexpr float kLeastTopP = 1e-6F;

// The ranges are those of proto/berth/v1/inference.proto.
struct NumberField {
  std::string_view name;
  Range range;
  std::optional<float> Sampling::*to;
};
constexpr std::array kNumbers{
    NumberField{"temperature", {0, 100}, &Sampling::temperature},
    NumberField{"top_p", {0, 1}, &Sampling::top_p},
    NumberField{"min_p", {0, 1}, &Sampling::min_p},
    NumberField{"typical_p", {0, 1, true}, &Sampling::typical_p},
    NumberField{"top_n_sigma", {0, 100}, &Sampling::top_n_sigma},
    NumberField{"xtc_probability", {0, 1}, &Sampling::xtc_probability},
    NumberField{"xtc_threshold", {0, 1}, &Sampling::xtc_threshold},
    NumberField{"dynamic_temperature_range", {0, 100}, &Sampling::dynamic_temperature_range},
    NumberField{
        "dynamic_temperature_exponent", {0, 100, true}, &Sampling::dynamic_temperature_exponent},
    NumberField{"repeat_penalty", {0, 100, true}, &Sampling::repetition_penalty},
    NumberField{"repetition_penalty", {0, 100, true}, &Sampling::repetition_penalty},
    NumberField{"presence_penalty", {-2, 2}, &Sampling::presence_penalty},
    NumberField{"frequency_penalty", {-2, 2}, &Sampling::frequency_penalty},
    NumberField{"dry_multiplier", {0, 100}, &Sampling::dry_multiplier},
    NumberField{"dry_base", {1, 100}, &Sampling::dry_base},
    NumberField{"mirostat_tau", {0, 100}, &Sampling::mirostat_tau},
    NumberField{"mirostat_eta", {0, 1, true}, &Sampling::mirostat_eta},
};

struct CountField {
  std::string_view name;
  std::int64_t low;
  std::int64_t high;
  std::optional<std::uint32_t> Sampling::*to;
};
constexpr std::array kCounts{
    // -1 turns it off in some servers' clients, 0 in others'.
    CountField{"top_k", -1, kMaxCount, &Sampling::top_k},
    CountField{"penalty_last_tokens", 0, kMaxCount, &Sampling::penalty_last_tokens},
    CountField{"dry_allowed_length", 0, kMaxCount, &Sampling::dry_allowed_length},
    CountField{"dry_last_tokens", 0, kMaxCount, &Sampling::dry_last_tokens},
    CountField{"mirostat", 0, 2, &Sampling::mirostat},
};

// OpenAI's seeds have 64 bits, the worker's 32. Those that fit stay what they are, the others are
// folded, so that one seed always means the same.
std::optional<std::uint32_t> read_seed(const Fields& body) {
  const json::value* value = body.find("seed");
  if (value == nullptr) return std::nullopt;
  std::uint64_t bits = 0;
  if (const std::uint64_t* large = value->if_uint64()) {
    bits = *large;
  } else if (const std::optional<std::int64_t> number = as_whole(*value)) {
    if (*number == -1) return std::nullopt;  // "at random" to llama.cpp's clients
    bits = static_cast<std::uint64_t>(*number);
  } else {
    body.refuse_value("seed", "a whole number of 64 bits", *value);
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(bits ^ (bits >> 32U));
}

std::optional<std::int32_t> read_token_id(std::string_view text) {
  constexpr std::size_t kMostDigits = 10;
  if (text.size() > kMostDigits) return std::nullopt;
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

void read_logit_bias(const Fields& body, std::vector<core::LogitBias>& to) {
  const std::optional<Fields> bias = body.object("logit_bias");
  if (!bias) return;
  const json::object& entries = body.find("logit_bias")->get_object();
  if (entries.size() > kMaxBiases) {
    return body.refuse("logit_bias", "logit_bias has " + std::to_string(entries.size()) +
                                         " entries; at most 4096 are allowed.");
  }
  for (const auto& entry : entries) {
    const std::string_view name(entry.key().data(), entry.key().size());
    const std::optional<std::int32_t> id = read_token_id(name);
    if (!id) {
      return body.refuse("logit_bias", "The keys of logit_bias must be ids of tokens, not " +
                                           describe(json::string(entry.key())) + ".");
    }
    const std::optional<float> value = bias->number(name, kBias);
    if (!value) {
      if (entry.value().is_null()) bias->refuse_value(name, "a number", entry.value());
      return;
    }
    for (const core::LogitBias& before : to) {
      // "7" and "07".
      if (before.token != *id) continue;
      return bias->refuse(name, "logit_bias names token " + std::to_string(*id) + " twice.");
    }
    to.push_back({*id, *value});
  }
}

}  // namespace

void read_sampling(const Fields& body, Sampling& to) {
  for (const NumberField& field : kNumbers) {
    if (const std::optional<float> value = body.number(field.name, field.range)) {
      to.*field.to = value;
    }
  }
  if (to.top_p && *to.top_p < kLeastTopP) to.top_p = kLeastTopP;
  for (const CountField& field : kCounts) {
    if (const auto value = body.whole(field.name, field.low, field.high)) {
      to.*field.to = static_cast<std::uint32_t>(std::max<std::int64_t>(*value, 0));
    }
  }
  to.seed = read_seed(body);
  to.ignore_eos = body.flag("ignore_eos");
  read_logit_bias(body, to.logit_bias);
}

}  // namespace berth::gateway::openai
