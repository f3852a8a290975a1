#include "worker/service/harmony_format.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/grammar/gbnf_matcher.h"
#include "worker/answer/answer_parser.h"
#include "worker/grammar/gbnf_check.h"
#include "worker/grammar/json_schema.h"

namespace berth::worker {
namespace {

constexpr const char* kFinal = "<|channel|>final<|message|>";
constexpr const char* kAnalysis = "<|channel|>analysis<|message|>";
constexpr const char* kNext = "<|end|><|start|>assistant";

class HarmonyFormat : public testing::Test {
 protected:
  static bool takes(const std::string& answer, bool in_reasoning = false,
                    const std::string& grammar = R"(root ::= "yes" | "no")") {
    const auto whole = harmony_format(grammar, in_reasoning);
    const auto checked = check_gbnf(whole);
    EXPECT_TRUE(checked.has_value()) << checked.error().message << "\n" << whole;
    return test::GbnfMatcher(whole).matches(answer);
  }
};

TEST_F(HarmonyFormat, EverySpellingOfTheFinalHeaderBindsTheAnswer) {
  for (const std::string header :
       {"<|channel|>final<|message|>", "<|channel|>final <|constrain|>json<|message|>",
        "<|channel|>final<|constrain|>json<|message|>"}) {
    EXPECT_TRUE(takes(header + "yes"));
    EXPECT_FALSE(takes(header + "maybe"));
    EXPECT_FALSE(takes(header));
    EXPECT_TRUE(takes("<|start|>assistant" + header + "no"));
  }
}

TEST_F(HarmonyFormat, AnAnswerWithoutAHeaderIsNone) {
  EXPECT_FALSE(takes("Sure!"));
  EXPECT_FALSE(takes("yes"));
  EXPECT_FALSE(takes(""));
  EXPECT_FALSE(takes("<|channel|>commentary<|message|>yes"));
}

TEST_F(HarmonyFormat, TheModelThinksFirstIfItLikes) {
  const std::string final = kFinal;
  for (const std::string thought :
       {"", "They ask.\nSo what?", "a < b, <<|, <|en, <|end|, <|<|end", "yes", "ä 🙂"}) {
    EXPECT_TRUE(takes(kAnalysis + thought + kNext + final + "yes")) << thought;
    EXPECT_TRUE(takes(thought + kNext + final + "no", true)) << thought;
    EXPECT_FALSE(takes(kAnalysis + thought + kNext + final + "maybe")) << thought;
    EXPECT_FALSE(takes(kAnalysis + thought)) << thought;
    EXPECT_FALSE(takes(kAnalysis + thought + "<|end|>")) << thought;
    EXPECT_FALSE(takes(kAnalysis + thought + kNext + "maybe")) << thought;
  }
  // It ends with the first <|end|>, also behind what looks like one.
  EXPECT_TRUE(takes(std::string(kAnalysis) + "<|en<" + kNext + final + "yes"));
  EXPECT_FALSE(takes(std::string(kAnalysis) + "a<|end|>b" + kNext + final + "yes"));
}

TEST_F(HarmonyFormat, GrammarsKeepTheirMeaning) {
  const std::string final = kFinal;
  const std::string tricky =
      "# root is the root\n"
      "root ::= \"root \\\" root\" root-2 | [root\\]] root | \"harmony-\" # root \" [ <\n"
      "root-2 ::= \"!\" (root | \"\\\\\")\n";
  EXPECT_TRUE(takes(final + "harmony-", false, tricky));
  EXPECT_TRUE(takes(final + "r]tharmony-", false, tricky));
  EXPECT_TRUE(takes(final + "root \" root!root \" root!\\", false, tricky));
  EXPECT_FALSE(takes(final + "root", false, tricky));
  // Names of tokens stay as they are.
  EXPECT_NE(harmony_format("root ::= <root> !<[5]> root | \"\"", false).find("<root> !<[5]> h"),
            std::string::npos);
}

TEST_F(HarmonyFormat, SchemasAreKeptTo) {
  const auto schema = json_schema_to_gbnf(
      R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})");
  ASSERT_TRUE(schema.has_value());
  EXPECT_TRUE(takes(std::string(kFinal) + R"({"a": 7})", false, *schema));
  EXPECT_FALSE(takes(std::string(kFinal) + R"({"a": "7"})", false, *schema));
  EXPECT_FALSE(takes(R"({"a": 7})", false, *schema));
  EXPECT_TRUE(takes(std::string(kFinal) + "{}", false, any_json_grammar()));
}

// What the grammar lets through, the client sees as reasoning and the format.
TEST_F(HarmonyFormat, IsReadAsTheAnswer) {
  const std::string answer =
      std::string(kAnalysis) + "So." + kNext + "<|channel|>final <|constrain|>json<|message|>yes";
  ASSERT_TRUE(takes(answer));
  AnswerForm form;
  form.tools = ToolForm::kHarmony;
  AnswerParser parser(form, {});
  AnswerDelta delta;
  parser.push(answer, delta);
  parser.finish(delta);
  EXPECT_EQ(delta.reasoning, "So.");
  EXPECT_EQ(delta.content, "yes");
}

}  // namespace
}  // namespace berth::worker
