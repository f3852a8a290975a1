// What GrammarGate allows, against libllama's own grammar sampler and a real vocabulary.

#include "worker/engine/grammar_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/text.h"
#include "tests/integration/engine/vocabulary_model.h"
#include "tests/unit/worker/grammar/example_grammars.h"
#include "tests/unit/worker/grammar/schema_samples.h"
#include "worker/engine/llama_handles.h"
#include "worker/grammar/json_schema.h"

namespace berth::worker {
namespace {

using ::testing::HasSubstr;

const VocabularyModel& model() {
  static const VocabularyModel made("tinychat.gguf");
  return made;
}

std::vector<llama_token_data> all_tokens() {
  std::vector<llama_token_data> all;
  for (std::uint32_t token = 0; token < model().vocabulary().size(); ++token) {
    all.push_back(llama_token_data{static_cast<TokenId>(token), 1, 0});
  }
  return all;
}

std::unique_ptr<GrammarGate> gate_of(const std::string& grammar,
                                     const std::vector<std::string>& triggers = {}) {
  auto made = GrammarGate::make(model().get(), grammar, triggers, nullptr);
  if (made) return std::move(*made);
  ADD_FAILURE() << made.error().message << "\n" << grammar;
  return nullptr;
}

// Text that is not UTF-8, of which libllama takes some for characters.
bool is_broken(const std::string& text) {
  const auto bad = first_invalid_utf8(text);
  return text.find('\0') != std::string::npos || (bad && *bad < utf8_complete_prefix(text));
}

// Takes `steps` tokens at random among those that are allowed; returns how often they were as
// libllama has them.
std::size_t expect_equal(const std::string& grammar, std::uint64_t seed, int steps) {
  const auto gate = gate_of(grammar);
  const SamplerPointer theirs(llama_sampler_init_grammar(model().get(), grammar.c_str(), "root"));
  if (!gate || !theirs) return 0;
  test::SchemaSamples random(seed);
  std::size_t compared = 0;
  std::string written;
  for (int step = 0; step < steps; ++step) {
    auto ours = all_tokens();
    auto expected = ours;
    gate->mark_refused(ours);
    llama_token_data_array array{expected.data(), expected.size(), -1, false};
    llama_sampler_apply(theirs.get(), &array);
    std::vector<TokenId> allowed;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      auto text = written;
      model().vocabulary().append_piece(ours[i].id, text, true);
      if (is_broken(text)) continue;
      const bool ours_allows = !std::isinf(ours[i].logit);
      const bool theirs_allows = !std::isinf(expected[i].logit);
      if (ours_allows && theirs_allows) allowed.push_back(ours[i].id);
      // Within a character, libllama refuses what [^…] or !<…> might still take.
      if (first_invalid_utf8(text) && ours_allows) continue;
      EXPECT_EQ(ours_allows, theirs_allows)
          << grammar << "\nseed " << seed << " step " << step << " text " << text;
    }
    ++compared;
    if (allowed.empty() || ::testing::Test::HasFailure()) break;
    const auto next = allowed[random.below(allowed.size())];
    if (model().vocabulary().ends_generation(next)) break;
    EXPECT_TRUE(gate->allows(next));
    EXPECT_TRUE(gate->accept(next));
    llama_sampler_accept(theirs.get(), next);
    model().vocabulary().append_piece(next, written, true);
  }
  return compared;
}

TEST(GrammarGate, AllowsWhatLibllamaAllowsBySchemas) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    test::SchemaSamples samples(seed);
    const auto grammar = json_schema_to_gbnf(boost::json::serialize(samples.document_schema()));
    ASSERT_TRUE(grammar);
    compared += expect_equal(*grammar, seed, 25);
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 300U);
}

TEST(GrammarGate, AllowsWhatLibllamaAllowsByOtherGrammars) {
  std::vector<std::string> grammars = {
      "root ::= <[5]> (!<[6]>)* \"end\"",  // by number
      "root ::= \"\u00e9\" [\u3041-\u309f]+ | [^a-z]*",
      "root ::= (\"a\" | \"b\"?)* \"c\"",
      "root ::= a a a\na ::= \"x\" | b | \"\"\nb ::= \"y\"*",
      "# \"comment\rroot ::= \"yes\"",  // ends at a carriage return, too
  };
  for (const auto& [name, text] : test::kExampleGrammars) {
    if (text.find("<think>") == std::string_view::npos) grammars.emplace_back(text);
  }
  for (const auto& grammar : grammars) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      EXPECT_GT(expect_equal(grammar, seed, 25), 0U) << grammar;
      if (HasFailure()) return;
    }
  }
}

TEST(GrammarGate, TokensByNameAreThoseOfTheVocabulary) {
  const auto gate = gate_of("root ::= <|im_start|> \"x\"");
  ASSERT_TRUE(gate);
  const auto token = model().vocabulary().control_token("<|im_start|>");
  ASSERT_TRUE(token);
  EXPECT_TRUE(gate->allows(*token));
  const auto none =
      GrammarGate::make(model().get(), "root ::= \"a\"\n  <no such token>", {}, nullptr);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().reason, Reason::kInvalidArgument);
  EXPECT_THAT(none.error().message, HasSubstr("<no such token>"));
}

// Accepts the token of one letter again and again; returns how often it could, and the error.
std::pair<int, std::string> repeat(GrammarGate& gate, const std::string& letter, int most) {
  const auto tokens = model().vocabulary().tokenize(letter, false);
  for (int i = 0; i < most; ++i) {
    for (const auto token : *tokens) {
      auto all = all_tokens();
      gate.mark_refused(all);
      if (!gate.allows(token)) return {i, "refused"};
      if (const auto accepted = gate.accept(token); !accepted) return {i, accepted.error().message};
    }
  }
  return {most, ""};
}

// In libllama each of these doubles the readings: 60 of them would take longer than there is time.
TEST(GrammarGate, ReadingsThatDoubleDoNotStopTheWorker) {
  const auto gate = gate_of("root ::= r\nr ::= \"(\" r \"+\" | \"(\" r \"-\" | \"x\"");
  EXPECT_EQ(repeat(*gate, "(", 60), std::make_pair(60, std::string()));
  const auto letters = gate_of("root ::= r\nr ::= [a-z] r \"+\" | [a-z] r \"-\" | \"0\"");
  EXPECT_EQ(repeat(*letters, "q", 60), std::make_pair(60, std::string()));
}

TEST(GrammarGate, WhatStaysAmbiguousEndsWithAnError) {
  const auto gate = gate_of("root ::= r\nr ::= [a-z] r | [a-z] r \")\" | \"0\"");
  const auto [times, why] = repeat(*gate, "q", 1000);
  EXPECT_GT(times, 200);
  EXPECT_THAT(why, HasSubstr("The grammar is ambiguous while it nests: after 25"));
  EXPECT_THAT(why, HasSubstr("characters it could stand at more than 256 places."));
}

TEST(GrammarGate, WhatItRefusesIsNoAmbiguity) {
  const auto gate = gate_of("root ::= \"1\"");
  const auto other = model().vocabulary().tokenize("2", false);
  ASSERT_FALSE(gate->allows(other->front()));
  const auto accepted = gate->accept(other->front());
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().reason, Reason::kInternal);
  EXPECT_THAT(accepted.error().message, HasSubstr("refuses"));
}

TEST(GrammarGate, TriggersMayBeginWithOneAnother) {
  const auto gate = gate_of("root ::= \"1\"", {"<a", "<ab>"});
  const auto say = [&](const std::string& text) {
    const auto tokens = model().vocabulary().tokenize(text, false);
    for (const auto token : *tokens) {
      if (!gate->allows(token)) return false;
      EXPECT_TRUE(gate->accept(token));
    }
    return true;
  };
  EXPECT_TRUE(say("x < a"));
  EXPECT_TRUE(gate->waits());
  EXPECT_TRUE(say("<"));
  EXPECT_TRUE(say("a"));
  EXPECT_FALSE(gate->waits());
  EXPECT_TRUE(say("b"));
  EXPECT_TRUE(say(">"));
  EXPECT_FALSE(say("2"));
  EXPECT_TRUE(say("1"));
}

}  // namespace
}  // namespace berth::worker
