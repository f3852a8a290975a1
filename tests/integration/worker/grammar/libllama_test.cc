// Grammars of worker/grammar against libllama itself, with a real vocabulary: it takes all that
// the converter makes, reads them as the converter means them, and neither aborts nor hangs on what
// the guard lets through.

#include <gtest/gtest.h>
#include <boost/json/object.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llama.h"
#include "tests/integration/engine/vocabulary_model.h"
#include "tests/unit/worker/grammar/example_grammars.h"
#include "tests/unit/worker/grammar/schema_samples.h"
#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"
#include "worker/grammar/schema_document.h"
#include "worker/grammar/tool_call_schema.h"

namespace berth::worker {
namespace {

struct FreeSampler {
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using SamplerPointer = std::unique_ptr<llama_sampler, FreeSampler>;

const llama_vocab* vocabulary() {
  static const VocabularyModel model("tinychat.gguf");
  return model.get();
}

SamplerPointer load(const std::string& grammar) {
  return SamplerPointer(llama_sampler_init_grammar(vocabulary(), grammar.c_str(), "root"));
}

bool allows(llama_sampler* sampler, llama_token token) {
  llama_token_data one{token, 1.0F, 0.0F};
  llama_token_data_array list{&one, 1, -1, false};
  llama_sampler_apply(sampler, &list);
  return std::isfinite(one.logit);
}

std::vector<llama_token> tokens_of(const std::string& text) {
  std::vector<llama_token> tokens(text.size() + 8);
  const auto count =
      llama_tokenize(vocabulary(), text.data(), static_cast<std::int32_t>(text.size()),
                     tokens.data(), static_cast<std::int32_t>(tokens.size()), false, false);
  tokens.resize(static_cast<std::size_t>(std::max(count, 0)));
  return tokens;
}

// Whether the vocabulary spells the text exactly; it may put a blank in front.
bool spells(const std::vector<llama_token>& tokens, const std::string& text) {
  std::string spelled;
  for (const auto token : tokens) {
    std::string piece(256, '\0');
    const auto size = llama_token_to_piece(vocabulary(), token, piece.data(),
                                           static_cast<std::int32_t>(piece.size()), 0, false);
    spelled.append(piece, 0, static_cast<std::size_t>(std::max(size, 0)));
  }
  return spelled == text;
}

// Whether libllama's state of the grammar lets the whole text pass, and then the end.
bool takes(const std::string& grammar, const std::string& text) {
  const auto tokens = tokens_of(text);
  const auto sampler = load(grammar);
  if (!sampler) return false;
  for (const auto token : tokens) {
    if (!allows(sampler.get(), token)) return false;
    llama_sampler_accept(sampler.get(), token);
  }
  return allows(sampler.get(), llama_vocab_eos(vocabulary()));
}

TEST(GrammarInLibllama, TakesWhatTheConverterMakes) {
  std::size_t documents = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    test::SchemaSamples samples(seed);
    const auto schema = samples.document_schema();
    const auto grammar = json_schema_to_gbnf(json_text(schema));
    ASSERT_TRUE(grammar) << seed << ": " << grammar.error().message;
    ASSERT_TRUE(load(*grammar)) << seed << "\n" << *grammar;
    for (int i = 0; i < 2; ++i) {
      const auto text = json_text(samples.value_of(schema));
      if (!spells(tokens_of(text), text)) continue;
      ++documents;
      EXPECT_TRUE(takes(*grammar, text)) << seed << ": " << json_text(schema) << "\n" << text;
      EXPECT_FALSE(takes(*grammar, text + "]")) << seed;
      EXPECT_FALSE(takes(*grammar, "]" + text)) << seed;
    }
  }
  EXPECT_GT(documents, 100U);
}

TEST(GrammarInLibllama, TakesTheLargestGrammars) {
  std::string values = R"({"enum":[0)";
  for (int i = 1; i < 10'000; ++i) values += ",\"v" + std::to_string(i * 7919) + '"';
  std::string properties = R"({"additionalProperties":true,"properties":{"p":{})";
  for (int i = 1; i < 1'000; ++i) properties += ",\"p" + std::to_string(i) + "\":{}";
  std::string tools = "[";
  for (int i = 0; i < 256; ++i) {
    tools += (i == 0 ? "" : ",") + std::string(R"({"type":"function","function":{"name":"f)") +
             std::to_string(i) + R"(","parameters":{"properties":{"a":{"type":"string"}}}}})";
  }
  const auto calls = tool_call_schema(tools + "]");
  ASSERT_TRUE(calls);
  for (const std::string& schema :
       {values + "]}", properties + "}}", *calls,
        std::string(R"({"type":"string","minLength":1000000,"maxLength":1000000})"),
        std::string(R"({"type":"string","maxLength":999999})"),
        std::string(
            R"({"type":"array","items":{"type":"array","maxItems":256},"maxItems":100000})"),
        std::string(R"({"pattern":"^((a{1,100}b){1,100}c){1,100}[^\"\\\\]{0,3000}$"})")}) {
    const auto grammar = json_schema_to_gbnf(schema);
    ASSERT_TRUE(grammar) << schema.substr(0, 80) << ": " << grammar.error().message;
    EXPECT_TRUE(load(*grammar)) << schema.substr(0, 80);
  }
  EXPECT_TRUE(load(any_json_grammar()));
  EXPECT_TRUE(takes(any_json_grammar(), R"({"a": [1, {"b": null}]})"));
  EXPECT_FALSE(takes(any_json_grammar(), "[1]"));
}

TEST(GrammarInLibllama, TakesWrappedCalls) {
  GrammarForm form;
  form.before = "<tool_call>\n";
  form.after = "\n</tool_call>";
  form.separator = "\n";
  form.repeated = true;
  const auto calls = json_schema_to_gbnf(R"({"type":"integer"})", form);
  ASSERT_TRUE(calls);
  EXPECT_TRUE(takes(*calls, "<tool_call>\n12\n</tool_call>\n<tool_call>\n3\n</tool_call>"));
  EXPECT_FALSE(takes(*calls, "<tool_call>\nx\n</tool_call>"));
}

TEST(GrammarInLibllama, ReadsEveryOrdinaryGrammarThatTheGuardTakes) {
  for (const auto& [name, text] : test::kExampleGrammars) {
    ASSERT_TRUE(check_gbnf(text)) << name;
    // Tokens by name depend on the vocabulary.
    const bool loaded = load(std::string(text)) != nullptr;
    EXPECT_TRUE(loaded || text.find("<think>") != std::string_view::npos) << name;
  }
}

// Pieces that are wild together, most of them malformed. What the guard lets through is loaded, and
// asked about a character and the end.
TEST(GrammarInLibllama, NeitherAbortsNorHangsOnWhatTheGuardTakes) {
  constexpr std::string_view kPieces[] = {
      "root ::= ", "a ::= ", "b ::= ",   "c ::= ",    "\n",      " | ",     " ( ",    " ) ",
      " a ",       " b ",    " c ",      " root ",    "\"x\"",   "\"\"",    "[a-z]",  "[^x]",
      ".",         "*",      "+",        "?",         "{2}",     "{0,3}",   "{1,}",   "{30}",
      "{0}",       "<[5]>",  "!<[6]>",   "# c\n",     "\"\\n\"", "[あ-ん]", "\"xy\"", "\n  | ",
      "{0,40}",    "[\\]]",  "\"\\\"\"", "(\"x\" | )"};
  std::size_t taken = 0;
  std::size_t loaded = 0;
  for (std::uint64_t seed = 0; seed < 25'000; ++seed) {
    test::SchemaSamples random(seed);
    std::string grammar = "root ::= ";
    for (std::size_t i = 2 + random.below(22); i > 0; --i) {
      grammar += kPieces[random.below(std::size(kPieces))];
    }
    grammar += "\na ::= \"x\" b?\nb ::= c\nc ::= \"y\" | \"\"\n";
    if (!check_gbnf(grammar)) continue;
    ++taken;
    const auto sampler = load(grammar);
    EXPECT_TRUE(sampler) << grammar;
    if (!sampler) continue;
    ++loaded;
    for (const auto token : tokens_of("xxy")) {
      if (!allows(sampler.get(), token)) break;
      llama_sampler_accept(sampler.get(), token);
    }
    static_cast<void>(allows(sampler.get(), llama_vocab_eos(vocabulary())));
  }
  EXPECT_GT(taken, 200U);
  EXPECT_EQ(loaded, taken);
}

}  // namespace
}  // namespace berth::worker
