#include "worker/grammar/grammar_place.h"

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.h"
#include "tests/unit/worker/grammar/accepts.h"
#include "tests/unit/worker/grammar/schema_samples.h"
#include "worker/grammar/gbnf_check.h"

namespace berth::worker {
namespace {

using State = GbnfStates::State;

std::unique_ptr<GbnfStates> states_of(std::string_view grammar) {
  const auto model = checked_gbnf(grammar, GbnfBounds::kConverterBytes);
  if (!model) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  std::vector<GbnfProgram::Token> tokens;
  for (const auto& token : model->tokens) tokens.push_back({token.id, token.any_other});
  std::uint32_t root = 0;
  while (model->names[root] != "root") ++root;
  return std::make_unique<GbnfStates>(std::make_shared<GbnfProgram>(*model, tokens, root));
}

enum class Verdict { kRefused, kTooMany, kBegun, kComplete };

Verdict verdict_of(const GbnfStates& states, const GrammarPlace& place) {
  if (place.state == GbnfStates::kRefused) return Verdict::kRefused;
  if (place.state == GbnfStates::kTooMany) return Verdict::kTooMany;
  return is_complete(states, place) ? Verdict::kComplete : Verdict::kBegun;
}

Verdict read(GbnfStates& states, std::string_view text) {
  states.begin_token();
  return verdict_of(states, after_text(states, {states.start(), {}}, text));
}

Verdict read(std::string_view grammar, std::string_view text) {
  return read(*states_of(grammar), text);
}

TEST(GrammarPlace, ReadsLiteralsClassesAndRepetitions) {
  constexpr std::string_view kGrammar =
      "root ::= \"ab\" [^c-e] . (\"x\" | \"y\" \"z\"?)* [0-9]{2,3}";
  EXPECT_EQ(read(kGrammar, ""), Verdict::kBegun);
  EXPECT_EQ(read(kGrammar, "ab"), Verdict::kBegun);
  EXPECT_EQ(read(kGrammar, "abd"), Verdict::kRefused);
  EXPECT_EQ(read(kGrammar, "abfd12"), Verdict::kComplete);
  EXPECT_EQ(read(kGrammar, "abf\n1"), Verdict::kBegun);
  EXPECT_EQ(read(kGrammar, "abf\xC3\xBCxxyyz123"), Verdict::kComplete);
  EXPECT_EQ(read(kGrammar, "abffz12"), Verdict::kRefused);
  EXPECT_EQ(read(kGrammar, "abff1234"), Verdict::kRefused);
}

TEST(GrammarPlace, AnEmptyTextMayBeComplete) {
  EXPECT_EQ(read("root ::= \"a\"?", ""), Verdict::kComplete);
  EXPECT_EQ(read("root ::= a a\na ::= \"x\" | \"\"", "xx"), Verdict::kComplete);
  EXPECT_EQ(read("root ::= a a\na ::= \"x\" | \"\"", "xxx"), Verdict::kRefused);
}

TEST(GrammarPlace, CharactersMayBeCutAnywhere) {
  auto states = states_of("root ::= [\u00e9-\u00eb]+ \"\U0001F600\"");
  GrammarPlace place{states->start(), {}};
  const std::string_view text = "\u00ea\u00e9\U0001F600";
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(verdict_of(*states, place), Verdict::kBegun) << i;
    place = after_text(*states, place, text.substr(i, 1));
  }
  EXPECT_EQ(verdict_of(*states, place), Verdict::kComplete);
  // What a begun character cannot become is refused at once.
  EXPECT_EQ(read(*states, "\xC4"), Verdict::kRefused);
  EXPECT_EQ(read(*states, "\xF0\x9E"), Verdict::kRefused);
  EXPECT_EQ(read(*states, "\xC3"), Verdict::kBegun);
}

TEST(GrammarPlace, WhatIsNoUtf8AndNulAreRefused) {
  for (const std::string_view text :
       {"\x80", "\xC0\x80", "\xE0\x80", "\xED\xA0\x80", "\xF5", "\xF4\x90", "\xC3z"}) {
    EXPECT_EQ(read("root ::= .*", text), Verdict::kRefused);
  }
  EXPECT_EQ(read("root ::= .*", std::string_view("\0", 1)), Verdict::kRefused);
}

TEST(GrammarPlace, TokensAreThoseThatItNames) {
  auto states = states_of("root ::= <[7]> (!<[8]>)* \"end\" | \"x\"");
  const GrammarPlace start{states->start(), {}};
  EXPECT_EQ(verdict_of(*states, after_token(*states, start, 8, "q")), Verdict::kRefused);
  EXPECT_EQ(verdict_of(*states, after_token(*states, start, 8, "x")), Verdict::kComplete);
  EXPECT_EQ(verdict_of(*states, after_token(*states, start, 7, "")), Verdict::kRefused);
  auto place = after_token(*states, start, 7, "<think>");
  EXPECT_EQ(verdict_of(*states, place), Verdict::kBegun);
  place = after_token(*states, place, 9, "anything \xC3");
  EXPECT_EQ(verdict_of(*states, place), Verdict::kBegun);
  EXPECT_EQ(verdict_of(*states, after_token(*states, place, 8, "q")), Verdict::kRefused);
  // Either another token, or the literal.
  EXPECT_EQ(verdict_of(*states, after_token(*states, place, 5, "end")), Verdict::kComplete);
  EXPECT_EQ(verdict_of(*states, after_token(*states, place, 8, "end")), Verdict::kComplete);
}

// As the independent matcher has it, for texts that a grammar has and for damaged ones.
TEST(GrammarPlace, ReadsWhatTheMatcherReads) {
  std::size_t complete = 0;
  std::size_t others = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    test::SchemaSamples samples(seed);
    const auto schema = samples.document_schema();
    const auto grammar = json_schema_to_gbnf(boost::json::serialize(schema));
    ASSERT_TRUE(grammar) << seed;
    const auto states = states_of(*grammar);
    for (int i = 0; i < 4; ++i) {
      auto text = test::spaced_text(samples.value_of(schema));
      if (i % 2 == 1) text = samples.damaged(std::move(text));
      if (first_invalid_utf8(text)) continue;
      const bool expected = test::GbnfMatcher(*grammar).matches(text);
      (expected ? complete : others) += 1;
      EXPECT_EQ(read(*states, text) == Verdict::kComplete, expected) << seed << "\n" << text;
    }
  }
  EXPECT_GT(complete, 100U);
  EXPECT_GT(others, 100U);
}

// --- bounds

std::size_t deepest(GbnfStates& states, std::size_t most) {
  GrammarPlace place{states.start(), {}};
  for (std::size_t depth = 0; depth < most; ++depth) {
    states.begin_token();
    place = after_text(states, place, "(");
    if (place.state >= GbnfStates::kTooMany) return depth;
    place.state = states.keep_only(place.state);
  }
  return most;
}

TEST(GrammarBounds, ReadingsThatDoubleWithEveryParenthesisCostNothing) {
  const auto states = states_of("root ::= r\nr ::= \"(\" r \"+\" | \"(\" r \"-\" | \"x\"");
  EXPECT_EQ(deepest(*states, 100'000), 100'000U);
  EXPECT_EQ(read(*states, std::string(50, '(') + "x" + std::string(50, '+')), Verdict::kComplete);
  EXPECT_EQ(read(*states, "((x+-"), Verdict::kComplete);
  EXPECT_EQ(read(*states, "((x+"), Verdict::kBegun);
  EXPECT_EQ(read(*states, "((x+-+"), Verdict::kRefused);
}

TEST(GrammarBounds, NodesThatTellThemselvesApartLateAreTaken) {
  std::string kinds;
  for (int i = 0; i < 40; ++i) {
    kinds += std::string(i == 0 ? "" : ",") +
             R"({"type":"object","required":["child","kind"],"properties":{)"
             R"("child":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"kind":{"const":"k)" +
             std::to_string(i) + "\"}}}";
  }
  const auto grammar =
      json_schema_to_gbnf(R"({"$ref":"#/$defs/node","$defs":{"node":{"anyOf":[)" + kinds + "]}}}");
  ASSERT_TRUE(grammar) << grammar.error().message;
  std::string text = "null";
  for (int i = 0; i < 30; ++i) {
    text = "{\"child\": " + text + ", \"kind\": \"k" + std::to_string(i) + "\"}";
  }
  EXPECT_EQ(read(*grammar, text), Verdict::kComplete);
}

TEST(GrammarBounds, HowManyParenthesesAreOpenIsKnownUpToABound) {
  const auto states = states_of("root ::= r\nr ::= \"(\" r | \"(\" r \")\" | \"x\"");
  const auto depth = deepest(*states, 10'000);
  EXPECT_GT(depth, 200U);
  EXPECT_LE(depth, GbnfStates::kMostReturns + 1);
  EXPECT_EQ(read(*states, "(((x))"), Verdict::kComplete);
  EXPECT_EQ(read(*states, "(((x))))"), Verdict::kRefused);
}

TEST(GrammarBounds, ATextMayNestWithoutEndUntilMemoryIsShort) {
  const auto states = states_of("root ::= \"(\" root \")\" | \"x\"");
  const auto depth = deepest(*states, 3 * GbnfStates::kMostFrames);
  EXPECT_GT(depth, 100'000U);
  EXPECT_LT(depth, GbnfStates::kMostFrames);
}

TEST(GrammarBounds, OldStatesAreForgotten) {
  // Every number of blanks up to 2,000 in every row is a state of its own.
  const auto states = states_of("root ::= (row \"\\n\")*\nrow ::= [a-z]{0,2000} \"!\"");
  GrammarPlace place{states->start(), {}};
  const std::string row = std::string(1999, 'q') + "!\n";
  for (int i = 0; i < 20; ++i) {
    for (const char letter : row) {
      states->begin_token();
      place = after_text(*states, place, {&letter, 1});
      ASSERT_LT(place.state, GbnfStates::kTooMany);
      place.state = states->keep_only(place.state);
    }
  }
  EXPECT_TRUE(is_complete(*states, place));
}

// More states than have a table for where they lead: every place in every row is one.
TEST(GrammarBounds, WhatHasNoTableIsFoundToo) {
  std::string kinds;  // of characters, so that tables are large
  for (char letter = 'a'; letter <= 'z'; ++letter) kinds += std::string(" | \"") + letter + "?\"";
  const auto states = states_of("root ::= row{300}" + kinds + "\nrow ::= [a-z]{0,300} \"!\"");
  const auto row = std::string(299, 'q') + "!";
  for (int round = 0; round < 2; ++round) {
    GrammarPlace place{states->start(), {}};
    for (int i = 0; i < 300; ++i) {
      EXPECT_FALSE(is_complete(*states, place));
      states->begin_token();
      place = after_text(*states, place, row);
      ASSERT_LT(place.state, GbnfStates::kTooMany) << i;
    }
    EXPECT_TRUE(is_complete(*states, place));
  }
}

// However a token's text multiplies the readings, asking about it takes bounded work.
TEST(GrammarBounds, ATokensWorkIsBounded) {
  std::string grammar = "root ::= r\nr ::= \"x\"";
  for (int i = 0; i < 200; ++i) {
    grammar += " | [a-z] r \"" + std::to_string(i) + "\"";
    grammar += " | [a-z] r";
  }
  const auto states = states_of(grammar);
  states->begin_token();
  const GrammarPlace start{states->start(), {}};
  std::size_t unknown = 0;
  for (char first = 'a'; first <= 'z'; ++first) {
    const auto place = after_text(*states, start, std::string(500, first));
    unknown += place.state == GbnfStates::kTooMany ? 1 : 0;
  }
  EXPECT_EQ(unknown, 26U);
}

}  // namespace
}  // namespace berth::worker
