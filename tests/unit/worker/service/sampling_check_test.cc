#include "worker/service/sampling_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "worker/engine/settings_check.h"

namespace berth::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr SamplingBounds kBounds{1000, 512};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NumberCase {
  std::string name;
  void (v1::Sampling::*set)(float);
  float SamplingSettings::*to;
  float low;
  float high;
  bool above_low = false;

  [[nodiscard]] bool allows(float value) const {
    return value <= high && (above_low ? value > low : value >= low);
  }
};

using S = v1::Sampling;
using T = SamplingSettings;
// Written once more from the protocol's comments.
const std::vector<NumberCase> kCases = {
    {"temperature", &S::set_temperature, &T::temperature, 0, 100},
    {"top_p", &S::set_top_p, &T::top_p, 0, 1, true},
    {"min_p", &S::set_min_p, &T::min_p, 0, 1},
    {"typical_p", &S::set_typical_p, &T::typical_p, 0, 1, true},
    {"top_n_sigma", &S::set_top_n_sigma, &T::top_n_sigma, 0, 100},
    {"xtc_probability", &S::set_xtc_probability, &T::xtc_probability, 0, 1},
    {"xtc_threshold", &S::set_xtc_threshold, &T::xtc_threshold, 0, 1},
    {"dynamic_temperature_range", &S::set_dynamic_temperature_range, &T::dynamic_temperature_range,
     0, 100},
    {"dynamic_temperature_exponent", &S::set_dynamic_temperature_exponent,
     &T::dynamic_temperature_exponent, 0, 100, true},
    {"repetition_penalty", &S::set_repetition_penalty, &T::repetition_penalty, 0, 100, true},
    {"presence_penalty", &S::set_presence_penalty, &T::presence_penalty, -2, 2},
    {"frequency_penalty", &S::set_frequency_penalty, &T::frequency_penalty, -2, 2},
    {"dry_multiplier", &S::set_dry_multiplier, &T::dry_multiplier, 0, 100},
    {"dry_base", &S::set_dry_base, &T::dry_base, 1, 100},
    {"mirostat_tau", &S::set_mirostat_tau, &T::mirostat_tau, 0, 100},
    {"mirostat_eta", &S::set_mirostat_eta, &T::mirostat_eta, 0, 1, true},
};

Error problem(const v1::Sampling& sampling) {
  const auto checked = check_sampling(sampling, kBounds);
  EXPECT_FALSE(checked.has_value());
  if (checked) return {};
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
  EXPECT_NE(checked.error().extras, nullptr);
  return checked.error();
}

TEST(SamplingCheck, NothingSetMeansTheDefaultsOfTheProtocol) {
  const auto checked = check_sampling({}, kBounds);
  ASSERT_TRUE(checked.has_value());
  const SamplingSettings defaults;
  for (const auto& one : kCases) EXPECT_EQ((*checked).*one.to, defaults.*one.to) << one.name;
  EXPECT_EQ(checked->temperature, 0.8F);
  EXPECT_EQ(checked->top_k, 40U);
  EXPECT_EQ(checked->top_p, 0.95F);
  EXPECT_EQ(checked->min_p, 0.05F);
  EXPECT_EQ(checked->penalty_last_tokens, 64U);
  EXPECT_EQ(checked->dry_allowed_length, 2U);
  EXPECT_THAT(checked->dry_breakers, ElementsAre("\n", ":", "\"", "*"));
  EXPECT_EQ(checked->mirostat, 0U);
  EXPECT_FALSE(checked->ignore_eos);
}

RC_GTEST_PROP(SamplingCheck, AnyFloatIsTakenExactlyInItsRange, (std::uint32_t bits)) {
  const auto value = std::bit_cast<float>(bits);  // also NaN, infinities and the smallest ones
  for (const auto& one : kCases) {
    v1::Sampling sampling;
    (sampling.*one.set)(value);
    const auto checked = check_sampling(sampling, kBounds);
    RC_ASSERT(checked.has_value() == one.allows(value));
    if (checked) {
      const float taken = (*checked).*one.to;
      RC_ASSERT(taken == value);
    } else {
      RC_ASSERT(checked.error().extras->param == "sampling." + one.name);
    }
  }
}

RC_GTEST_PROP(SamplingCheck, NumbersNearTheBordersAreTakenExactlyInTheirRange, ()) {
  const auto& one = kCases[*rc::gen::inRange<std::size_t>(0, kCases.size())];
  float value = *rc::gen::element(one.low, one.high, 0.0F);
  const auto steps = *rc::gen::inRange(-3, 4);
  for (int i = 0; i < std::abs(steps); ++i) {
    value = std::nextafter(value, steps < 0 ? -kInfinity : kInfinity);
  }
  v1::Sampling sampling;
  (sampling.*one.set)(value);
  RC_ASSERT(check_sampling(sampling, kBounds).has_value() == one.allows(value));
}

TEST(SamplingCheck, NaNAndInfinitiesAreRefusedByNameAndValue) {
  for (const auto& one : kCases) {
    v1::Sampling sampling;
    (sampling.*one.set)(std::nanf(""));
    const auto nan = problem(sampling);
    EXPECT_EQ(nan.extras->param, "sampling." + one.name);
    EXPECT_THAT(nan.message, HasSubstr("not not a number"));
    (sampling.*one.set)(kInfinity);
    EXPECT_THAT(problem(sampling).message, HasSubstr("not infinity"));
    (sampling.*one.set)(-kInfinity);
    EXPECT_THAT(problem(sampling).message, HasSubstr("not -infinity"));
  }
}

TEST(SamplingCheck, ErrorsSayTheValueAndTheRange) {
  v1::Sampling sampling;
  sampling.set_top_p(1.5F);
  EXPECT_EQ(problem(sampling).message, "sampling.top_p must be above 0 and at most 1, not 1.5.");
  sampling.Clear();
  sampling.set_temperature(-1e-9F);
  EXPECT_EQ(problem(sampling).message, "sampling.temperature must be from 0 to 100, not -1e-09.");
  sampling.Clear();
  sampling.set_mirostat(3);
  EXPECT_EQ(problem(sampling).message, "sampling.mirostat must be 0 (off), 1 or 2, not 3.");
}

RC_GTEST_PROP(SamplingCheck, AnyCountIsTakenAndFitsLibllamasSignedNumbers,
              (std::uint32_t top_k, std::uint32_t last, std::uint32_t length,
               std::uint32_t dry_last)) {
  v1::Sampling sampling;
  sampling.set_top_k(top_k);
  sampling.set_penalty_last_tokens(last);
  sampling.set_dry_allowed_length(length);
  sampling.set_dry_last_tokens(dry_last);
  const auto checked = check_sampling(sampling, kBounds);
  RC_ASSERT(checked.has_value());
  RC_ASSERT(checked->top_k == std::min(top_k, kBounds.vocabulary));
  RC_ASSERT(checked->penalty_last_tokens == std::min(last, kBounds.window));
  RC_ASSERT(checked->dry_allowed_length == std::min(length, kBounds.window));
  RC_ASSERT(checked->dry_last_tokens ==
            (dry_last < kBounds.window ? dry_last : SamplingSettings().dry_last_tokens));
}

TEST(SamplingCheck, BreakersReplaceTheDefaultsAndAreBounded) {
  v1::Sampling sampling;
  sampling.add_dry_breakers("x");
  sampling.add_dry_breakers(std::string(40, 'y'));
  const auto checked = check_sampling(sampling, kBounds);
  ASSERT_TRUE(checked.has_value());
  EXPECT_THAT(checked->dry_breakers, ElementsAre("x", std::string(40, 'y')));

  sampling.set_dry_breakers(1, std::string(41, 'y'));
  EXPECT_EQ(problem(sampling).extras->param, "sampling.dry_breakers[1]");
  sampling.set_dry_breakers(1, "");
  EXPECT_THAT(problem(sampling).message, HasSubstr("empty"));
  sampling.set_dry_breakers(1, "\xff");
  EXPECT_THAT(problem(sampling).message, HasSubstr("UTF-8"));
  sampling.set_dry_breakers(1, std::string("a\0b", 3));
  EXPECT_THAT(problem(sampling).message, HasSubstr("NUL"));
  EXPECT_EQ(problem(sampling).extras->param, "sampling.dry_breakers[1]");
  sampling.clear_dry_breakers();
  for (int i = 0; i < 17; ++i) sampling.add_dry_breakers("x");
  EXPECT_THAT(problem(sampling).message, HasSubstr("17"));
}

void add_bias(v1::Sampling& sampling, TokenId token, float bias) {
  auto& entry = *sampling.add_logit_bias();
  entry.set_token(token);
  entry.set_bias(bias);
}

TEST(SamplingCheck, AHundredThousandBiasesAreRefused) {
  v1::Sampling sampling;
  for (int i = 0; i < 100'000; ++i) add_bias(sampling, i, 1);
  const auto error = problem(sampling);
  EXPECT_EQ(error.extras->param, "sampling.logit_bias");
  EXPECT_THAT(error.message, HasSubstr("100000"));
  EXPECT_THAT(error.message, HasSubstr("4096"));
}

TEST(SamplingCheck, EachTokenHasOneBias) {
  v1::Sampling sampling;
  for (int i = 0; i < 1000; ++i) add_bias(sampling, i, 1);
  EXPECT_TRUE(check_sampling(sampling, kBounds).has_value());
  add_bias(sampling, 7, 1);
  EXPECT_EQ(problem(sampling).extras->param, "sampling.logit_bias[1000].token");
}

RC_GTEST_PROP(SamplingCheck, AnyBiasIsTakenUpToAHundredAndBansFromMinusAHundredDown,
              (std::uint32_t bits)) {
  const auto bias = std::bit_cast<float>(bits);
  v1::Sampling sampling;
  add_bias(sampling, 1, bias);
  const auto checked = check_sampling(sampling, kBounds);
  RC_ASSERT(checked.has_value() == (std::isfinite(bias) && bias <= 100));
  if (!checked) return;
  RC_ASSERT(checked->logit_bias.size() == 1U);
  RC_ASSERT(checked->logit_bias[0].first == 1);
  RC_ASSERT(checked->logit_bias[0].second == (bias <= -100 ? -kInfinity : bias));
}

RC_GTEST_PROP(SamplingCheck, OnlyTokensOfTheVocabularyHaveABias, (TokenId token)) {
  v1::Sampling sampling;
  add_bias(sampling, token, 1);
  RC_ASSERT(check_sampling(sampling, kBounds).has_value() == (token >= 0 && token < 1000));
}

// A number in the range of a field, often one of its ends.
float number_in(const NumberCase& field) {
  const float low = field.above_low ? std::nextafter(field.low, field.high) : field.low;
  const auto step = *rc::gen::inRange(0, 1001);
  if (step == 0 || *rc::gen::inRange(0, 4) == 0) return low;
  return field.low + (field.high - field.low) * static_cast<float>(step) / 1000;
}

RC_GTEST_PROP(SamplingCheck, WhatIsTakenTheEngineTakesToo, ()) {
  v1::Sampling sampling;
  for (const auto& field : kCases) {
    if (*rc::gen::arbitrary<bool>()) (sampling.*field.set)(number_in(field));
  }
  if (*rc::gen::arbitrary<bool>()) sampling.set_top_k(*rc::gen::arbitrary<std::uint32_t>());
  if (*rc::gen::arbitrary<bool>()) sampling.set_mirostat(*rc::gen::inRange(0U, 3U));
  const auto breakers = *rc::gen::inRange(0, 17);
  for (int i = 0; i < breakers; ++i) {
    std::string text(*rc::gen::inRange(std::size_t{1}, std::size_t{41}), 'x');
    if (*rc::gen::inRange(0, 20) == 0) text.front() = '\0';
    sampling.add_dry_breakers(text);
  }
  const auto biases = *rc::gen::inRange(0, 10);
  for (TokenId token = 0; token < biases; ++token) {
    add_bias(sampling, token, static_cast<float>(*rc::gen::inRange(-200, 101)));
  }
  const auto checked = check_sampling(sampling, kBounds);
  RC_CLASSIFY(!checked);
  if (!checked) return;
  const auto taken = check_settings(*checked, kBounds.vocabulary);
  RC_ASSERT(taken.has_value());
}

TEST(SamplingCheck, SeedsAreRandomUnlessGiven) {
  v1::Sampling sampling;
  std::vector<std::uint32_t> seeds;
  for (int i = 0; i < 8; ++i) seeds.push_back(check_sampling(sampling, kBounds)->seed);
  EXPECT_NE(std::count(seeds.begin(), seeds.end(), seeds[0]), 8);
  for (const std::uint32_t seed : {0U, 1U, 4294967295U}) {
    sampling.set_seed(seed);
    EXPECT_EQ(check_sampling(sampling, kBounds)->seed, seed);
  }
}

}  // namespace
}  // namespace berth::worker
