// Every sampling setting against a real model: what it does to the text, that it is reproducible,
// and that no value of it ends the process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/integration/engine/generation.h"
#include "worker/engine/llama_sampler.h"

namespace berth::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr const char* kModel = "tinychat.gguf";
constexpr const char* kParis = "The capital of France is Paris.";

std::string question() {
  return chat("What is the capital of France?");
}

SamplingSettings greedy() {
  SamplingSettings settings;
  settings.temperature = 0;
  return settings;
}

// Hot and uncut: nearly every draw could have been another one.
SamplingSettings hot() {
  SamplingSettings settings;
  settings.temperature = 5;
  settings.top_k = 0;
  settings.top_p = 1;
  settings.min_p = 0;
  settings.seed = 7;
  settings.ignore_eos = true;
  return settings;
}

std::string text(const SamplingSettings& settings, std::size_t most = 24) {
  auto made = generate(loaded(kModel), settings, question(), most);
  EXPECT_FALSE(made.error) << made.error->message;
  return made.text;
}

TokenId only_token(std::string_view piece) {
  const auto tokens = loaded(kModel).tokenize(piece, false);
  EXPECT_TRUE(tokens && tokens->size() == 1) << piece;
  return tokens ? tokens->back() : 0;
}

// --- greedy, seeds

TEST(Sampling, GreedyIsTheTrainedAnswer) {
  const auto made = generate(loaded(kModel), greedy(), question(), 50);
  EXPECT_EQ(made.text, kParis);
  EXPECT_TRUE(made.ended);
}

TEST(Sampling, TopK1IsGreedyAtAnyTemperature) {
  auto settings = hot();
  settings.top_k = 1;
  settings.ignore_eos = false;
  EXPECT_EQ(text(settings), kParis);
}

TEST(Sampling, CutsThatLeaveOneTokenAreGreedy) {
  for (const auto cut : {&SamplingSettings::top_p, &SamplingSettings::top_n_sigma}) {
    auto settings = hot();
    settings.ignore_eos = false;
    settings.*cut = 1e-6F;
    EXPECT_EQ(text(settings), kParis);
  }
  auto settings = hot();
  settings.ignore_eos = false;
  settings.min_p = 1;
  EXPECT_EQ(text(settings), kParis);
}

TEST(Sampling, TheSameSeedGivesTheSameTextAnotherSeedAnother) {
  auto settings = hot();
  const auto first = text(settings);
  EXPECT_EQ(text(settings), first);
  settings.seed = 8;
  EXPECT_NE(text(settings), first);
}

TEST(Sampling, TheRandomSeedOfLlamaCppIsRepeatableToo) {
  auto settings = hot();
  settings.seed = 0xFFFFFFFF;
  EXPECT_EQ(text(settings), text(settings));
}

// --- every method has an effect and is reproducible

struct Method {
  const char* name;
  void (*set)(SamplingSettings&);
};

class Methods : public ::testing::TestWithParam<Method> {};

TEST_P(Methods, ChangesTheTextAndIsReproducible) {
  const auto before = text(hot());
  auto settings = hot();
  GetParam().set(settings);
  const auto after = text(settings);
  EXPECT_NE(after, before);
  EXPECT_EQ(text(settings), after);
}

INSTANTIATE_TEST_SUITE_P(
    Sampling, Methods,
    ::testing::Values(Method{"top_k", [](auto& s) { s.top_k = 5; }},
                      Method{"top_p", [](auto& s) { s.top_p = 0.3F; }},
                      Method{"min_p", [](auto& s) { s.min_p = 0.5F; }},
                      Method{"typical_p", [](auto& s) { s.typical_p = 0.2F; }},
                      Method{"top_n_sigma", [](auto& s) { s.top_n_sigma = 1; }},
                      Method{"temperature", [](auto& s) { s.temperature = 1; }},
                      Method{"dynamic",
                             [](auto& s) { s.temperature = 2, s.dynamic_temperature_range = 2; }},
                      Method{"mirostat1", [](auto& s) { s.mirostat = 1; }},
                      Method{"mirostat2", [](auto& s) { s.mirostat = 2; }},
                      Method{"repetition", [](auto& s) { s.repetition_penalty = 3; }},
                      Method{"frequency", [](auto& s) { s.frequency_penalty = 2; }},
                      Method{"presence", [](auto& s) { s.presence_penalty = 20; }}),
    [](const auto& test) { return test.param.name; });

TEST(Sampling, XtcTakesTheLikeliestAway) {
  auto settings = greedy();
  settings.ignore_eos = true;
  const auto usual = text(settings);
  settings.xtc_probability = 1;
  settings.xtc_threshold = 1e-4F;
  const auto other = text(settings);
  EXPECT_NE(other, usual);
  EXPECT_EQ(text(settings), other);
  settings.xtc_threshold = 0.6F;  // off
  EXPECT_EQ(text(settings), usual);
}

TEST(Sampling, DryBreaksALoop) {
  auto& engine = loaded(kModel);
  auto settings = greedy();
  settings.ignore_eos = true;
  const auto prompt = chat("Repeat: red blue red blue red blue red blue red blue");
  const auto loop = generate(engine, settings, prompt, 60).text;
  settings.dry_multiplier = 10;
  settings.dry_allowed_length = 1;
  const auto broken = generate(engine, settings, prompt, 60).text;
  EXPECT_NE(broken, loop);
  EXPECT_EQ(generate(engine, settings, prompt, 60).text, broken);
  // With every letter a breaker, no sequence is long enough.
  settings.dry_breakers.clear();
  for (char letter = ' '; letter <= '~'; ++letter) settings.dry_breakers.emplace_back(1, letter);
  settings.dry_breakers.resize(64);
  EXPECT_FALSE(generate(engine, settings, prompt, 4).error);
}

TEST(Sampling, PenaltiesSeeThePrompt) {
  // "Paris" is in the prompt: its presence costs so much that it does not come again.
  auto& engine = loaded(kModel);
  const auto prompt = chat("Paris Paris. What is the capital of France?");
  auto settings = greedy();
  const auto first = engine.tokenize(" Paris", false);
  ASSERT_TRUE(first);
  settings.presence_penalty = 1000;
  settings.penalty_last_tokens = 1000;
  const auto made = generate(engine, settings, prompt, 12);
  const auto seen = engine.tokenize(prompt, true);
  for (const auto& token : made.tokens) {
    EXPECT_THAT(*seen, Not(::testing::Contains(token.token)));
  }
}

// --- biases

TEST(Sampling, ABannedTokenNeverComes) {
  auto settings = greedy();
  settings.logit_bias = {{only_token(" Paris"), -kInfinity}};
  EXPECT_THAT(text(settings), Not(HasSubstr(" Paris")));
  auto drawn = hot();
  drawn.logit_bias = settings.logit_bias;
  EXPECT_THAT(text(drawn, 100), Not(HasSubstr(" Paris")));
}

TEST(Sampling, AForcedTokenAlwaysComes) {
  for (auto settings : {greedy(), SamplingSettings{}, hot()}) {
    settings.logit_bias = {{only_token(" Paris"), 1000}};
    EXPECT_EQ(text(settings, 3), " Paris Paris Paris");
  }
}

TEST(Sampling, IgnoredEndTokensDoNotCome) {
  auto settings = greedy();
  settings.ignore_eos = true;
  const auto made = generate(loaded(kModel), settings, question(), 60);
  EXPECT_FALSE(made.ended);
  EXPECT_EQ(made.tokens.size(), 60U);
}

TEST(Sampling, WhereAllIsBannedThereIsAnError) {
  for (auto settings : {greedy(), hot()}) {
    const auto size = static_cast<TokenId>(loaded(kModel).facts().vocabulary);
    for (TokenId token = 0; token < size; ++token) {
      settings.logit_bias.emplace_back(token, -kInfinity);
    }
    const auto made = generate(loaded(kModel), settings, question(), 5);
    ASSERT_TRUE(made.error);
    EXPECT_EQ(made.error->reason, Reason::kInvalidArgument);
  }
}

// What lies further back is in no sequence; memory for it would be taken for every request.
TEST(Penalties, LookBackOverTheServedWindow) {
  auto& engine = loaded_random("bpe", 3000);
  ASSERT_LT(engine.facts().window, 2000U);
  auto settings = greedy();
  settings.presence_penalty = 2;
  settings.penalty_last_tokens = 1'000'000;
  for (const bool is_near : {false, true}) {
    const auto sampler = engine.make_sampler(settings);
    ASSERT_TRUE(sampler);
    std::vector<TokenId> prompt(2001, 500);
    prompt[is_near ? 2000 - engine.facts().window + 1 : 0] = 400;
    (*sampler)->accept_prompt(prompt);
    std::vector<float> logits(engine.facts().vocabulary, 0);
    logits[400] = 2;
    logits[401] = 1;
    std::vector<llama_token_data> scratch;
    const auto chosen = static_cast<LlamaSampler&>(**sampler).choose(logits, scratch);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->token, is_near ? 401 : 400);
  }
}

// --- grammars

constexpr const char* kJson = R"(
root   ::= "{" pair ("," pair)? "}"
pair   ::= "\"" [a-z]+ "\":" number
number ::= [1-9] [0-9]? [0-9]?
)";

TEST(Grammar, ForcesItsForm) {
  for (auto settings : {greedy(), SamplingSettings{}, hot()}) {
    settings.grammar = kJson;
    settings.ignore_eos = false;
    const auto made = generate(loaded(kModel), settings, question(), 400);
    ASSERT_FALSE(made.error) << made.error->message;
    // A hot model may write a word that takes all its tokens.
    if (made.ended) {
      EXPECT_THAT(made.text,
                  MatchesRegex(R"(\{"[a-z]+":[1-9][0-9]?[0-9]?(,"[a-z]+":[1-9][0-9]?[0-9]?)?\})"));
    } else {
      EXPECT_THAT(made.text, ::testing::StartsWith("{\""));
    }
    EXPECT_EQ(generate(loaded(kModel), settings, question(), 400).text, made.text);
  }
}

TEST(Grammar, WithEveryMethod) {
  for (int method = 0; method < 8; ++method) {
    auto settings = hot();
    settings.ignore_eos = false;
    settings.grammar = R"(root ::= "yes" | "no")";
    if (method == 1) settings.mirostat = 1;
    if (method == 2) settings.mirostat = 2;
    if (method == 3) settings.typical_p = 0.5F;
    if (method == 4) settings.xtc_probability = 1;
    if (method == 5) settings.top_n_sigma = 1;
    if (method == 6) settings.dynamic_temperature_range = 4;
    if (method == 7) settings.top_k = 40;
    const auto made = generate(loaded(kModel), settings, question(), 20);
    ASSERT_FALSE(made.error) << method << made.error->message;
    EXPECT_TRUE(made.text == "yes" || made.text == "no") << method << ": " << made.text;
    EXPECT_TRUE(made.ended) << method;
  }
}

TEST(Grammar, OnlyAnEndTokenComesBehindIt) {
  auto settings = hot();
  settings.ignore_eos = false;
  settings.grammar = R"(root ::= "a")";
  const auto made = generate(loaded(kModel), settings, question(), 20);
  EXPECT_EQ(made.text, "a");
  EXPECT_TRUE(made.ended);
  settings.ignore_eos = true;
  const auto none = generate(loaded(kModel), settings, question(), 20);
  ASSERT_TRUE(none.error);
  EXPECT_EQ(none.error->reason, Reason::kInvalidArgument);
  EXPECT_THAT(none.error->message, HasSubstr("grammar allows no token"));
}

TEST(Grammar, ThatTheAnswerFitsChangesNothing) {
  auto settings = hot();
  settings.ignore_eos = false;
  settings.temperature = 0.8F;
  const auto free = text(settings, 60);
  settings.grammar = R"(root ::= [^\x00]*)";
  EXPECT_EQ(text(settings, 60), free);
}

TEST(Grammar, ThatCannotBeUsedIsRefused) {
  for (const std::string grammar :
       {"root ::= ", "start ::= \"a\"", "root ::= missing", "root ::= root \"a\"", "root ::= \"a",
        "%", "root ::= [a-", "root ::= <no such token>"}) {
    auto settings = greedy();
    settings.grammar = grammar;
    const auto made = loaded(kModel).make_sampler(settings);
    if (made) {
      // Some are grammars of the empty text to libllama.
      EXPECT_NO_THROW(generate(loaded(kModel), settings, question(), 5)) << grammar;
      continue;
    }
    EXPECT_EQ(made.error().reason, Reason::kInvalidArgument) << grammar;
    EXPECT_THAT(made.error().message, HasSubstr("grammar")) << grammar;
  }
}

TEST(Grammar, ALazyOneAppliesBehindItsTrigger) {
  auto settings = greedy();
  settings.grammar = R"(root ::= ": " [0-9] [0-9])";
  settings.grammar_triggers = {"never said", "France"};
  EXPECT_THAT(text(settings), MatchesRegex("The capital of France: [0-9][0-9]"));
  settings.grammar_triggers = {"never said"};
  EXPECT_EQ(text(settings), kParis);
  settings.grammar_triggers = {"capital of Fr"};  // ends within a token
  settings.grammar = R"(root ::= "an" [a-z]* "!")";
  const auto within = text(settings);
  EXPECT_THAT(within, ::testing::StartsWith("The capital of Fr"));
}

TEST(Grammar, ATriggersTokenThatGoesOnWrongIsNotSaid) {
  auto settings = greedy();
  // " France" would complete the trigger, and go on with what the grammar refuses.
  settings.grammar_triggers = {" Fra"};
  settings.grammar = R"(root ::= "x" "y")";
  const auto made = generate(loaded(kModel), settings, question(), 40);
  EXPECT_FALSE(made.error) << made.error->message;
  EXPECT_THAT(made.text, Not(HasSubstr("France")));
}

TEST(Grammar, TriggersAreTextsAndNoPatterns) {
  auto settings = greedy();
  settings.grammar = R"(root ::= "x")";
  settings.grammar_triggers = {".*", "[a-z]+", "\\", "\"", "^The", "a|b", "\xC3\xA9", "\n\t"};
  EXPECT_EQ(text(settings), kParis);
}

// --- log probabilities

TEST(Logprobs, AreTheModelsBeforeTemperatureCutsAndBiases) {
  auto plain = greedy();
  plain.top_logprobs = 5;
  const auto base = generate(loaded(kModel), plain, question(), 6);
  ASSERT_EQ(base.tokens.size(), 6U);
  auto changed = plain;
  changed.temperature = 3;
  changed.top_k = 1;
  changed.logit_bias = {{only_token(" Paris"), -0.5F}};
  changed.presence_penalty = 0.01F;
  const auto other = generate(loaded(kModel), changed, question(), 6);
  ASSERT_EQ(other.tokens.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(other.tokens[i].token, base.tokens[i].token);
    EXPECT_NEAR(other.tokens[i].logprob, base.tokens[i].logprob, 1e-5);
    ASSERT_EQ(base.tokens[i].top.size(), 5U);
    EXPECT_EQ(base.tokens[i].top[0].token, base.tokens[i].token);
    EXPECT_FLOAT_EQ(base.tokens[i].top[0].logprob, base.tokens[i].logprob);
    EXPECT_LE(base.tokens[i].logprob, 0);
  }
}

TEST(Logprobs, OfAllTokensSumToOneAndAreInOrder) {
  auto settings = greedy();
  settings.top_logprobs = loaded(kModel).facts().vocabulary;
  const auto made = generate(loaded(kModel), settings, chat("Tell me something."), 3);
  for (const auto& token : made.tokens) {
    double sum = 0;
    float last = 0;
    for (const auto& likely : token.top) {
      EXPECT_LE(likely.logprob, last);
      last = likely.logprob;
      sum += std::exp(static_cast<double>(likely.logprob));
    }
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

TEST(Logprobs, AreAbsentUnlessAskedFor) {
  const auto made = generate(loaded(kModel), greedy(), question(), 3);
  for (const auto& token : made.tokens) EXPECT_TRUE(token.top.empty());
  auto settings = greedy();
  settings.top_logprobs = 0;
  for (const auto& token : generate(loaded(kModel), settings, question(), 3).tokens) {
    EXPECT_TRUE(token.top.empty());
    EXPECT_LT(token.logprob, 0);
  }
}

// --- hostile settings

TEST(Hostile, EveryNumberIsRefusedOrDefined) {
  using S = SamplingSettings;
  const std::vector<float S::*> numbers = {&S::temperature,
                                           &S::dynamic_temperature_range,
                                           &S::dynamic_temperature_exponent,
                                           &S::top_p,
                                           &S::min_p,
                                           &S::typical_p,
                                           &S::top_n_sigma,
                                           &S::xtc_probability,
                                           &S::xtc_threshold,
                                           &S::repetition_penalty,
                                           &S::frequency_penalty,
                                           &S::presence_penalty,
                                           &S::dry_multiplier,
                                           &S::dry_base,
                                           &S::mirostat_tau,
                                           &S::mirostat_eta};
  const std::vector<float> values = {kNan,   -kNan,  kInfinity, -kInfinity, 0,    -0.0F,
                                     1e-45F, 1e-38F, 1e38F,     -1e38F,     1e6F, -1e6F,
                                     1e-3F,  1,      -1,        0.5F,       100};
  auto& engine = loaded_random("bpe", 400);
  for (const auto number : numbers) {
    for (const float value : values) {
      for (std::uint32_t mirostat = 0; mirostat < 3; ++mirostat) {
        SamplingSettings settings;
        settings.xtc_probability = 0.5F;
        settings.dry_multiplier = 1;
        settings.typical_p = 0.9F;
        settings.dynamic_temperature_range = 0.5F;
        settings.repetition_penalty = 1.1F;
        settings.mirostat = mirostat;
        settings.*number = value;
        const auto made = generate(engine, settings, "abc", 3);
        if (!std::isfinite(value)) {
          EXPECT_TRUE(made.error) << value;
        }
        if (made.error) {
          EXPECT_EQ(made.error->reason, Reason::kInvalidArgument) << made.error->message;
        }
      }
    }
  }
}

TEST(Hostile, CountsMayBeAnything) {
  using S = SamplingSettings;
  const std::vector<std::uint32_t S::*> counts = {
      &S::top_k, &S::penalty_last_tokens, &S::dry_allowed_length, &S::dry_last_tokens, &S::seed};
  for (const auto count : counts) {
    for (const std::uint32_t value : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
      SamplingSettings settings;
      settings.dry_multiplier = 1;
      settings.presence_penalty = 1;
      settings.*count = value;
      const auto made = generate(loaded_random("bpe", 400), settings, "abc", 8);
      EXPECT_FALSE(made.error) << value << made.error->message;
    }
  }
  SamplingSettings settings;
  settings.mirostat = 3;
  EXPECT_FALSE(loaded(kModel).make_sampler(settings));
}

TEST(Hostile, BiasesAndTexts) {
  const auto refused = [](const auto& set) {
    SamplingSettings settings;
    set(settings);
    const auto made = loaded(kModel).make_sampler(settings);
    return !made && made.error().reason == Reason::kInvalidArgument;
  };
  const auto size = static_cast<TokenId>(loaded(kModel).facts().vocabulary);
  EXPECT_TRUE(refused([](auto& s) { s.logit_bias = {{-1, 1}}; }));
  EXPECT_TRUE(refused([&](auto& s) { s.logit_bias = {{size, 1}}; }));
  EXPECT_TRUE(refused([](auto& s) { s.logit_bias = {{1, kNan}}; }));
  EXPECT_TRUE(refused([](auto& s) { s.logit_bias = {{1, kInfinity}}; }));
  EXPECT_TRUE(refused([](auto& s) { s.dry_breakers = {""}; }));
  EXPECT_TRUE(refused([](auto& s) { s.dry_breakers = {std::string("a\0b", 3)}; }));
  EXPECT_TRUE(refused([](auto& s) { s.dry_breakers.assign(65, "a"); }));
  EXPECT_TRUE(refused([](auto& s) { s.grammar = std::string("root ::= \"a\0\"", 13); }));
  EXPECT_TRUE(refused([](auto& s) { s.grammar_triggers = {"a"}; }));
  EXPECT_TRUE(refused([](auto& s) {
    s.grammar = "root ::= \"a\"", s.grammar_triggers = {std::string(2000, 'a')};
  }));
  SamplingSettings settings = greedy();
  settings.logit_bias.assign(100000, {1, 0.001F});
  EXPECT_FALSE(generate(loaded(kModel), settings, question(), 3).error);
}

}  // namespace
}  // namespace berth::worker
