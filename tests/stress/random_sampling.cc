#include "tests/stress/random_sampling.h"

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "tests/stress/random_text.h"

namespace berth::stress {
namespace {

struct Field {
  void (v1::Sampling::*set)(float);
  float low;
  float high;
  bool above_low = false;  // `low` itself is wrong
};

using S = v1::Sampling;
// The ranges that inference.proto states.
constexpr std::array kFields = {
    Field{&S::set_temperature, 0, 100},
    Field{&S::set_top_p, 0, 1, true},
    Field{&S::set_min_p, 0, 1},
    Field{&S::set_typical_p, 0, 1, true},
    Field{&S::set_top_n_sigma, 0, 100},
    Field{&S::set_xtc_probability, 0, 1},
    Field{&S::set_xtc_threshold, 0, 1},
    Field{&S::set_dynamic_temperature_range, 0, 100},
    Field{&S::set_dynamic_temperature_exponent, 0, 100, true},
    Field{&S::set_repetition_penalty, 0, 100, true},
    Field{&S::set_presence_penalty, -2, 2},
    Field{&S::set_frequency_penalty, -2, 2},
    Field{&S::set_dry_multiplier, 0, 100},
    Field{&S::set_dry_base, 1, 100},
    Field{&S::set_mirostat_tau, 0, 100},
    Field{&S::set_mirostat_eta, 0, 1, true},
};

float within(Random& random, const Field& field) {
  switch (random.below(6)) {
    case 0:
      return field.high;
    case 1:
      return field.above_low ? std::nextafter(field.low, field.high) : field.low;
    case 2:
      return field.low + (field.high - field.low) * 0.01F;
    default:
      return field.low + (field.high - field.low) * (1.0F - fraction(random));
  }
}

float outside(Random& random, const Field& field) {
  using Limits = std::numeric_limits<float>;
  switch (random.below(8)) {
    case 0:
      return Limits::quiet_NaN();
    case 1:
      return Limits::infinity();
    case 2:
      return -Limits::infinity();
    case 3:
      return std::nextafter(field.high, Limits::infinity());
    case 4:
      return field.above_low ? field.low : std::nextafter(field.low, -Limits::infinity());
    case 5:
      return Limits::max();
    case 6:
      return Limits::lowest();
    default:
      return -Limits::quiet_NaN();
  }
}

std::uint32_t any_count(Random& random) {
  return static_cast<std::uint32_t>(any_size(random, 0, std::numeric_limits<std::uint32_t>::max()));
}

void set_counts(Random& random, v1::Sampling& sampling) {
  if (random.percent(40)) sampling.set_top_k(any_count(random));
  if (random.percent(60)) sampling.set_seed(any_count(random));
  if (random.percent(30)) sampling.set_penalty_last_tokens(any_count(random));
  if (random.percent(20)) sampling.set_dry_allowed_length(any_count(random));
  if (random.percent(20)) sampling.set_dry_last_tokens(any_count(random));
  if (random.percent(15)) sampling.set_mirostat(static_cast<std::uint32_t>(random.below(3)));
  if (random.percent(20)) sampling.set_ignore_eos(random.percent(70));
}

std::int32_t some_token(Random& random, std::uint32_t vocabulary) {
  return static_cast<std::int32_t>(random.below(vocabulary));
}

void set_biases(Random& random, std::uint32_t vocabulary, v1::Sampling& sampling) {
  constexpr std::uint64_t kMost = 4096;
  const auto count = any_size(random, 1, random.percent(10) ? kMost : 12);
  std::set<std::int32_t> seen;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto token = some_token(random, vocabulary);
    if (!seen.insert(token).second) continue;
    auto& entry = *sampling.add_logit_bias();
    entry.set_token(token);
    entry.set_bias(one_of(
        random, {-100.0F, 100.0F, -1e30F, 0.0F, -1e-30F, 200.0F * fraction(random) - 100.0F}));
  }
}

void set_breakers(Random& random, v1::Sampling& sampling) {
  const auto count = random.between(1, 16);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto text = random_text(random, 20);
    const bool good = !text.empty() && text.size() <= 40 && text.find('\0') == std::string::npos;
    sampling.add_dry_breakers(good ? text : "\n");
  }
}

}  // namespace

v1::Sampling random_sampling(Random& random, std::uint32_t vocabulary) {
  v1::Sampling sampling;
  const auto chance = one_of<std::uint64_t>(random, {0, 10, 50, 100});
  for (const auto& field : kFields) {
    if (random.percent(chance)) (sampling.*field.set)(within(random, field));
  }
  if (chance > 0) set_counts(random, sampling);
  if (random.percent(20)) set_biases(random, vocabulary, sampling);
  if (random.percent(10)) set_breakers(random, sampling);
  if (random.percent(25)) sampling.set_temperature(0);
  return sampling;
}

void spoil_sampling(Random& random, std::uint32_t vocabulary, v1::Sampling& sampling) {
  switch (random.below(10)) {
    case 0:
      sampling.set_mirostat(static_cast<std::uint32_t>(any_size(random, 3, ~std::uint32_t{0})));
      return;
    case 1:
      for (int i = 0; i < 17; ++i) sampling.add_dry_breakers("x");
      return;
    case 2:
      *sampling.add_dry_breakers() =
          one_of<std::string>(random, {"", std::string(41, 'x'), "\xff"});
      return;
    case 3: {
      const auto token = some_token(random, vocabulary);
      for (int i = 0; i < 2; ++i) sampling.add_logit_bias()->set_token(token);
      return;
    }
    case 4:
      sampling.add_logit_bias()->set_token(one_of<std::int32_t>(
          random, {-1, static_cast<std::int32_t>(vocabulary), std::numeric_limits<int>::max(),
                   std::numeric_limits<int>::min()}));
      return;
    case 5: {
      sampling.clear_logit_bias();
      auto& entry = *sampling.add_logit_bias();
      entry.set_token(some_token(random, vocabulary));
      entry.set_bias(one_of(random, {std::numeric_limits<float>::quiet_NaN(), 101.0F,
                                     std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity()}));
      return;
    }
    case 6:
      for (int i = 0; i < 5000; ++i) sampling.add_logit_bias()->set_token(i);
      return;
    default: {
      const auto& field = kFields.at(random.below(kFields.size()));
      (sampling.*field.set)(outside(random, field));
    }
  }
}

}  // namespace berth::stress
