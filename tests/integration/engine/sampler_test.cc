// LlamaSampler beside libllama's own chain over all candidates, with the same seed.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/engine/vocabulary_model.h"
#include "worker/engine/dry_cache.h"
#include "worker/engine/fixed_seed.h"
#include "worker/engine/llama_sampler.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t kSize = 3000;
constexpr int kSteps = 300;

const VocabularyModel& model() {
  static const VocabularyModel made(test_models::Tokenizer::kBpe, kSize);
  return made;
}

// As llama.cpp's tools put it together.
SamplerPointer reference(const SamplingSettings& settings) {
  const auto* const vocabulary = model().get();
  auto parameters = llama_sampler_chain_default_params();
  SamplerPointer chain(llama_sampler_chain_init(parameters));
  const auto add = [&](llama_sampler* sampler) { llama_sampler_chain_add(chain.get(), sampler); };
  std::vector<llama_logit_bias> biases;
  for (const auto& [token, bias] : settings.logit_bias) biases.push_back({token, bias});
  add(llama_sampler_init_logit_bias(kSize, static_cast<std::int32_t>(biases.size()),
                                    biases.data()));
  add(llama_sampler_init_penalties(kSize, static_cast<std::int32_t>(settings.penalty_last_tokens),
                                   settings.repetition_penalty, settings.frequency_penalty,
                                   settings.presence_penalty));
  std::vector<const char*> breakers;
  for (const auto& text : settings.dry_breakers) breakers.push_back(text.c_str());
  add(llama_sampler_init_dry(vocabulary, settings.dry_multiplier, settings.dry_base,
                             static_cast<std::int32_t>(settings.dry_allowed_length), 2048,
                             breakers.data(), breakers.size()));
  add(llama_sampler_init_top_n_sigma(settings.top_n_sigma));
  add(llama_sampler_init_top_k(static_cast<std::int32_t>(settings.top_k)));
  add(llama_sampler_init_typical(settings.typical_p, 1));
  add(llama_sampler_init_top_p(settings.top_p, 1));
  add(llama_sampler_init_min_p(settings.min_p, 1));
  add(llama_sampler_init_xtc(settings.xtc_probability, settings.xtc_threshold, 1, settings.seed));
  add(llama_sampler_init_temp_ext(settings.temperature, settings.dynamic_temperature_range,
                                  settings.dynamic_temperature_exponent));
  add(llama_sampler_init_dist(settings.seed));
  return chain;
}

// Outputs as of a model: a normal distribution, with no two equal ones.
std::vector<float> outputs(std::mt19937& random) {
  std::normal_distribution<float> distribution(0, 2.5F);
  std::vector<float> logits(kSize);
  for (auto& logit : logits) logit = distribution(random);
  return logits;
}

void expect_equal_choices(const SamplingSettings& settings) {
  auto made = LlamaSampler::make(model().get(), settings, 2048);
  ASSERT_TRUE(made) << made.error().message;
  auto& sampler = static_cast<LlamaSampler&>(**made);
  const auto chain = reference(settings);
  std::vector<TokenId> prompt;
  for (TokenId token = 300; token < 340; ++token) prompt.insert(prompt.end(), {token, 301, 302});
  sampler.accept_prompt(prompt);
  for (const auto token : prompt) llama_sampler_accept(chain.get(), token);

  std::mt19937 random(4);
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < kSteps; ++step) {
    auto logits = outputs(random);
    const auto before = logits;
    std::vector<llama_token_data> all;
    for (std::uint32_t i = 0; i < kSize; ++i) {
      all.push_back({static_cast<TokenId>(i), logits[i], 0});
    }
    llama_token_data_array array{all.data(), all.size(), -1, false};
    llama_sampler_apply(chain.get(), &array);
    const auto expected = array.data[array.selected].id;
    llama_sampler_accept(chain.get(), expected);
    const auto chosen = sampler.choose(logits, scratch);
    ASSERT_TRUE(chosen) << chosen.error().message;
    ASSERT_EQ(chosen->token, expected) << "step " << step;
    ASSERT_EQ(logits, before) << "step " << step;
  }
}

struct Case {
  const char* name;
  void (*set)(SamplingSettings&);
};
class AsLibllama : public ::testing::TestWithParam<Case> {};

TEST_P(AsLibllama, ChoosesTheSameTokens) {
  SamplingSettings settings;
  settings.seed = 99;
  GetParam().set(settings);
  expect_equal_choices(settings);
}

INSTANTIATE_TEST_SUITE_P(
    LlamaSampler, AsLibllama,
    ::testing::Values(
        Case{"defaults", [](auto&) {}}, Case{"hot", [](auto& s) { s.temperature = 3; }},
        Case{"many", [](auto& s) { s.top_k = 500, s.temperature = 2, s.min_p = 0; }},
        Case{"all", [](auto& s) { s.top_k = 0, s.min_p = 0, s.top_p = 1; }},
        Case{"top_p", [](auto& s) { s.top_k = 0, s.min_p = 0, s.top_p = 0.7F; }},
        Case{"typical", [](auto& s) { s.typical_p = 0.6F; }},
        Case{"sigma", [](auto& s) { s.top_n_sigma = 1.5F; }},
        Case{"xtc", [](auto& s) { s.xtc_probability = 0.5F, s.xtc_threshold = 0.05F; }},
        Case{"dynamic", [](auto& s) { s.dynamic_temperature_range = 0.5F; }},
        Case{"penalties",
             [](auto& s) {
               s.repetition_penalty = 1.5F, s.frequency_penalty = 0.3F, s.presence_penalty = 0.2F;
             }},
        Case{"long_penalties",
             [](auto& s) { s.repetition_penalty = 2, s.penalty_last_tokens = 500; }},
        Case{"dry", [](auto& s) { s.dry_multiplier = 2, s.dry_allowed_length = 1; }},
        Case{"biases",
             [](auto& s) {
               s.logit_bias = {{300, 6.0F}, {301, 5.0F}, {302, -3.0F}, {303, -50.0F}};
             }},
        Case{"everything",
             [](auto& s) {
               s.repetition_penalty = 1.3F, s.dry_multiplier = 1, s.typical_p = 0.9F;
               s.xtc_probability = 0.3F, s.xtc_threshold = 0.1F, s.logit_bias = {{310, 7.0F}};
             }}),
    [](const auto& test) { return test.param.name; });

// With a grammar as llama-server does it: the drawn token is checked, and only where it is refused
// all candidates are, with a second draw.
TEST(LlamaSampler, DrawsOnceMoreWhereTheGrammarRefuses) {
  constexpr const char* kGrammar = "root ::= [a-m] ([n-z] [a-m])* \".\"";
  const TokenStarts starts(model().vocabulary());
  bool with_starts = true;
  for (const std::uint32_t top_k : {0U, 1U, 40U, 300U, 5000U, 40U, 0U}) {
    SamplingSettings settings;
    settings.seed = top_k + 5;
    settings.top_k = top_k;
    settings.temperature = 3;
    settings.min_p = 0;
    const auto chain = reference(settings);
    const SamplerPointer grammar(llama_sampler_init_grammar(model().get(), kGrammar, "root"));
    settings.grammar = kGrammar;
    const auto* const used = with_starts ? &starts : nullptr;
    with_starts = !with_starts;
    auto made = LlamaSampler::make(model().get(), settings, 2048, used);
    ASSERT_TRUE(made) << made.error().message;
    std::mt19937 random(6);
    std::vector<llama_token_data> scratch;
    std::vector<llama_token_data> all(kSize);
    for (int step = 0; step < 60; ++step) {
      auto logits = outputs(random);
      const auto fill = [&] {
        for (std::size_t i = 0; i < kSize; ++i) {
          all[i] = llama_token_data{static_cast<TokenId>(i), logits[i], 0};
        }
        return llama_token_data_array{all.data(), all.size(), -1, false};
      };
      auto array = fill();
      llama_sampler_apply(chain.get(), &array);
      auto expected = array.data[array.selected].id;
      llama_token_data one{expected, 1, 0};
      llama_token_data_array single{&one, 1, -1, false};
      llama_sampler_apply(grammar.get(), &single);
      if (std::isinf(one.logit)) {
        array = fill();
        llama_sampler_apply(grammar.get(), &array);
        llama_sampler_apply(chain.get(), &array);
        expected = array.data[array.selected].id;
      }
      const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
      ASSERT_TRUE(chosen) << chosen.error().message;
      ASSERT_EQ(chosen->token, expected) << "top_k " << top_k << ", step " << step;
      if (llama_vocab_is_eog(model().get(), expected)) break;
      llama_sampler_accept(grammar.get(), expected);
      llama_sampler_accept(chain.get(), expected);
    }
  }
}

// Each character opens thousands of alternatives, so that the time for all candidates together is
// over long before the last ones. What is drawn of these is allowed all the same.
TEST(LlamaSampler, NoRefusedTokenIsDrawnWhereAskingTakesTooLong) {
  std::mt19937 random(7);
  constexpr std::string_view kLetters = "bdfgklmnprstvzaeou";
  std::string words;
  for (int i = 0; i < 3000; ++i) {
    words += i == 0 ? "\"" : "\" | \"";
    for (int k = 0; k < 10; ++k) words += kLetters[random() % kLetters.size()];
  }
  SamplingSettings settings;
  settings.grammar = "root ::= any* (" + words + "\") any*\nany ::= [ a-hj-z]";
  settings.min_p = 0;
  settings.top_p = 1;
  std::vector<TokenId> refused;
  TokenId allowed = 0;
  for (TokenId token = kSize - 1; allowed == 0; --token) {
    std::string text;
    model().vocabulary().append_piece(token, text, true);
    const auto last = text.find('i');
    if (last == std::string::npos) {
      allowed = token;
    } else if (last > 2 && refused.size() < 20) {
      refused.push_back(token);
    }
  }
  for (const std::uint32_t top_k : {0U, 5000U, 40U, 1U}) {
    settings.top_k = top_k;
    const auto made = LlamaSampler::make(model().get(), settings, 2048);
    ASSERT_TRUE(made) << made.error().message;
    std::vector<float> logits(kSize, -30);
    for (const auto token : refused) logits[static_cast<std::size_t>(token)] = 10;
    logits[static_cast<std::size_t>(allowed)] = 5;
    std::vector<llama_token_data> scratch;
    for (int step = 0; step < 3; ++step) {
      const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
      ASSERT_TRUE(chosen) << chosen.error().message;
      EXPECT_EQ(chosen->token, allowed) << top_k;
    }
  }
}

TEST(TokenStarts, HaveEveryTokenOnceAndByItsBeginning) {
  const auto vocabulary = model().vocabulary();
  const TokenStarts starts(vocabulary);
  std::vector<TokenId> all(starts.others().begin(), starts.others().end());
  EXPECT_EQ(starts.characters().size(), 127U);  // the vocabulary has all bytes; NUL is another
  for (std::size_t i = 0; i < starts.characters().size(); ++i) {
    std::string character;
    vocabulary.append_piece(starts.characters()[i], character, true);
    ASSERT_EQ(character.size(), 1U);
    for (const TokenId token : starts.beginning_with(i)) {
      std::string text;
      vocabulary.append_piece(token, text, true);
      EXPECT_EQ(text.front(), character.front());
      EXPECT_FALSE(vocabulary.ends_generation(token));
      all.push_back(token);
    }
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), kSize);
  for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(all[i], static_cast<TokenId>(i));
}

// What a grammar allows does not depend on asking about its tokens' beginnings first.
RC_GTEST_PROP(TokenStarts, ChangeNoChoice, ()) {
  static const TokenStarts starts(model().vocabulary());
  static const std::vector<std::string> kGrammars = {"root ::= [a-f]+ \".\"",
                                                     "root ::= (\" \" [a-z]+)* \"!\"",
                                                     "root ::= [^a-z]+",
                                                     "root ::= [\\x20-\\x7E\\u00E0-\\u4E2D]+",
                                                     "root ::= \"\xC3\xA9\" [a-z]* \"<\"",
                                                     "root ::= \"x\" <|im_start|> [a-z]+",
                                                     "root ::= !<|im_start|> \"y\""};
  auto settings = SamplingSettings{};
  settings.grammar = *rc::gen::elementOf(kGrammars);
  settings.seed = *rc::gen::arbitrary<std::uint32_t>();
  settings.temperature = *rc::gen::elementOf(std::vector<float>{0, 1, 10});
  settings.top_k = *rc::gen::elementOf(std::vector<std::uint32_t>{0, 3, 300, kSize});
  settings.min_p = 0;
  const auto with = LlamaSampler::make(model().get(), settings, 2048, &starts);
  const auto without = LlamaSampler::make(model().get(), settings, 2048);
  RC_ASSERT(with.has_value() == without.has_value());
  RC_PRE(with.has_value());
  std::mt19937 random(settings.seed);
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < 12; ++step) {
    auto logits = outputs(random);
    const auto first = static_cast<LlamaSampler&>(**with).choose(logits, scratch);
    const auto second = static_cast<LlamaSampler&>(**without).choose(logits, scratch);
    RC_ASSERT(first.has_value() == second.has_value());
    if (!first) break;
    RC_ASSERT(first->token == second->token);
    if (model().vocabulary().ends_generation(first->token)) break;
  }
}

TEST(LlamaSampler, BrokenOutputsAreAnError) {
  for (const float broken :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    SamplingSettings settings;
    const auto made = LlamaSampler::make(model().get(), settings);
    ASSERT_TRUE(made);
    std::vector<float> logits(kSize, 1);
    logits[17] = broken;
    std::vector<llama_token_data> scratch;
    const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().reason, Reason::kInternal);
  }
}

TEST(LlamaSampler, PromptsMayHaveTokensOfNoVocabulary) {
  SamplingSettings settings;
  settings.presence_penalty = 1;
  settings.dry_multiplier = 1;
  const auto made = LlamaSampler::make(model().get(), settings);
  ASSERT_TRUE(made);
  const std::vector<TokenId> prompt = {-1, 1 << 30, static_cast<TokenId>(kSize), 5};
  (*made)->accept_prompt(prompt);
  std::vector<float> logits(kSize, 1);
  std::vector<llama_token_data> scratch;
  EXPECT_TRUE(static_cast<LlamaSampler&>(**made).choose(logits, scratch));
}

// Any settings that are in range, with outputs of any kind: many equal ones, huge, suppressed.
SamplingSettings any_settings() {
  const auto some = [](std::vector<float> values) { return *rc::gen::elementOf(values); };
  SamplingSettings settings;
  settings.seed = *rc::gen::arbitrary<std::uint32_t>();
  settings.temperature = some({0, 1e-6F, 1e-3F, 0.8F, 1, 100, 1e6F});
  settings.dynamic_temperature_range = some({0, 0, 0.5F, 100, 1e6F});
  settings.dynamic_temperature_exponent = some({0, 0.5F, 1, 100});
  settings.top_k = *rc::gen::elementOf(std::vector<std::uint32_t>{0, 1, 40, kSize, 0xFFFFFFFF});
  settings.top_p = some({0, 1e-6F, 0.5F, 0.95F, 1});
  settings.min_p = some({0, 1e-6F, 0.05F, 1});
  settings.typical_p = some({0, 0.5F, 1, 1});
  settings.top_n_sigma = some({-1, -1, 0, 1e-6F, 1, 1e6F});
  settings.xtc_probability = some({0, 0, 0.5F, 1});
  settings.xtc_threshold = some({0, 1e-6F, 0.1F, 0.5F, 1});
  settings.repetition_penalty = some({1e-30F, 1e-3F, 0.5F, 1, 1, 2, 1e6F});
  settings.frequency_penalty = some({-1e6F, -2, 0, 0, 2, 1e6F});
  settings.dry_multiplier = some({0, 0, 0, 1, 1e6F});
  settings.dry_base = some({1, 1.75F, 1e6F});
  settings.dry_allowed_length = *rc::gen::inRange(0U, 4U);
  settings.dry_breakers = {"a", "\n"};
  settings.mirostat = *rc::gen::inRange(0U, 3U);
  settings.mirostat_tau = some({0, 1e-6F, 5, 100});
  settings.mirostat_eta = some({0, 0.1F, 1});
  if (*rc::gen::arbitrary<bool>()) settings.grammar = "root ::= [ -~]*";
  if (*rc::gen::arbitrary<bool>()) settings.top_logprobs = 3;
  settings.ignore_eos = *rc::gen::arbitrary<bool>();
  return settings;
}

std::vector<float> any_outputs() {
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  const auto scale = *rc::gen::elementOf(std::vector<float>{0, 1, 20, 1e4F, 1e20F});
  const auto suppressed = *rc::gen::elementOf(std::vector<int>{0, 50, 99});  // percent
  const auto levels = *rc::gen::elementOf(std::vector<int>{2, 30, 1 << 20});
  std::mt19937 random(seed);
  std::vector<float> logits(kSize);
  for (auto& logit : logits) {
    const auto level = static_cast<int>(random() % static_cast<unsigned>(levels));
    logit = scale * (static_cast<float>(level) / static_cast<float>(levels) - 0.5F);
    if (static_cast<int>(random() % 100) < suppressed) {
      logit = -std::numeric_limits<float>::infinity();
    }
  }
  logits[400] = 0.5F * scale;  // never all
  return logits;
}

RC_GTEST_PROP(LlamaSampler, NoSettingsAndNoOutputsEndTheProcess, ()) {
  const auto settings = any_settings();
  auto made = LlamaSampler::make(model().get(), settings, 2048);
  RC_ASSERT(made.has_value());
  (*made)->accept_prompt(std::vector<TokenId>{300, 301, 302, 300, 301, 302});
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < 8; ++step) {
    auto logits = any_outputs();
    const auto before = logits;
    const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
    RC_ASSERT(logits == before);
    if (!chosen) {
      RC_ASSERT(chosen.error().reason == Reason::kInvalidArgument);
      continue;
    }
    RC_ASSERT(chosen->token >= 0);
    RC_ASSERT(static_cast<std::uint32_t>(chosen->token) < kSize);
    RC_ASSERT(std::isfinite(logits[static_cast<std::size_t>(chosen->token)]));
    RC_ASSERT(std::isfinite(chosen->logprob));
  }
}

// The texts that two samplers draw from the same outputs.
void expect_equal_draws(Result<std::unique_ptr<Sampler>> first,
                        Result<std::unique_ptr<Sampler>> second) {
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const std::vector<TokenId> prompt = {300, 301, 302, 300, 301, 303, 300, 301};
  (*first)->accept_prompt(prompt);
  (*second)->accept_prompt(prompt);
  std::mt19937 random(8);
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < 40; ++step) {
    auto logits = outputs(random);
    for (std::size_t token = 300; token < 304; ++token) logits[token] += 6;
    const auto left = static_cast<LlamaSampler&>(**first).choose(logits, scratch);
    const auto right = static_cast<LlamaSampler&>(**second).choose(logits, scratch);
    ASSERT_TRUE(left);
    ASSERT_TRUE(right);
    EXPECT_EQ(left->token, right->token) << step;
  }
}

TEST(LlamaSampler, ACutThatKeepsAllIsNone) {
  SamplingSettings none;
  none.top_k = 0;
  auto all = none;
  all.top_k = kSize;
  expect_equal_draws(LlamaSampler::make(model().get(), none),
                     LlamaSampler::make(model().get(), all));
}

TEST(LlamaSampler, ALargeCutKeepsTheLikeliestOnes) {
  constexpr std::uint32_t kLarge = 20'000;
  static const VocabularyModel large(test_models::Tokenizer::kBpe, kLarge);
  SamplingSettings settings;
  settings.temperature = 50;  // all that are kept are nearly as likely
  settings.top_k = 9'000;
  settings.top_p = 1;
  settings.min_p = 0;
  const auto made = LlamaSampler::make(large.get(), settings);
  ASSERT_TRUE(made);
  std::vector<float> logits(kLarge);
  for (std::size_t i = 0; i < kLarge; ++i) logits[i] = i % 2 == 0 ? 1.0F : 0.0F;
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < 50; ++step) {
    const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->token % 2, 0);
    EXPECT_LT(chosen->token, 18'000);  // of equals the first ones
  }
}

TEST(LlamaSampler, ACopiedDrySamplerIsAsANewOne) {
  DryCache cache;
  for (const float multiplier : {2.0F, 2.0F, 1.0F, 2.0F}) {
    SamplingSettings settings;
    settings.dry_multiplier = multiplier;
    settings.dry_allowed_length = 1;
    settings.temperature = 3;
    expect_equal_draws(LlamaSampler::make(model().get(), settings),
                       LlamaSampler::make(model().get(), settings, 2048, nullptr, &cache));
  }
}

TEST(LlamaSampler, LargeOutputsKeepTheDigitsOfTheirProbabilities) {
  SamplingSettings settings;
  settings.temperature = 0;
  settings.top_logprobs = 2;
  const auto made = LlamaSampler::make(model().get(), settings);
  ASSERT_TRUE(made);
  std::vector<float> logits(kSize, -std::numeric_limits<float>::infinity());
  logits[400] = 1e5F + 1;
  logits[401] = 1e5F;
  std::vector<llama_token_data> scratch;
  const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
  ASSERT_TRUE(chosen);
  EXPECT_NEAR(chosen->logprob, -std::log1p(std::exp(-1.0)), 1e-5);
  ASSERT_EQ(chosen->top.size(), 2U);
  EXPECT_NEAR(chosen->top[1].logprob, -1 - std::log1p(std::exp(-1.0)), 1e-5);
}

TEST(LlamaSampler, LogprobsAreOfTheSoftmax) {
  SamplingSettings settings;
  settings.top_logprobs = 20;
  const auto made = LlamaSampler::make(model().get(), settings);
  ASSERT_TRUE(made);
  std::mt19937 random(5);
  std::vector<llama_token_data> scratch;
  for (int step = 0; step < 20; ++step) {
    auto logits = outputs(random);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    const auto chosen = static_cast<LlamaSampler&>(**made).choose(logits, scratch);
    ASSERT_TRUE(chosen);
    const auto expect = [&](TokenId token, float logprob) {
      EXPECT_NEAR(logprob,
                  static_cast<double>(logits[static_cast<std::size_t>(token)]) - std::log(sum),
                  1e-5);
    };
    expect(chosen->token, chosen->logprob);
    ASSERT_EQ(chosen->top.size(), 20U);
    for (const auto& likely : chosen->top) expect(likely.token, likely.logprob);
  }
}

}  // namespace
}  // namespace berth::worker
