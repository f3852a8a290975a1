#include "worker/service/answer_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/grammar/gbnf_check.h"

namespace berth::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = ToolChoice::Kind;

Result<std::string> grammar_of(const v1::OutputFormat& format) {
  SamplingSettings sampling;
  if (auto applied = apply_format(format, sampling); !applied) return fail(applied.error());
  return sampling.grammar;
}

TEST(AnswerShape, FreeTextHasNoGrammar) {
  EXPECT_EQ(*grammar_of({}), "");
}

TEST(AnswerShape, FormatsBecomeGrammars) {
  v1::OutputFormat format;
  format.set_json_object(true);
  EXPECT_THAT(*grammar_of(format), HasSubstr("root"));
  format.set_json_schema(R"({"type": "integer"})");
  EXPECT_TRUE(check_gbnf(*grammar_of(format)).has_value());
  format.set_grammar(R"(root ::= "yes" | "no")");
  EXPECT_EQ(*grammar_of(format), R"(root ::= "yes" | "no")");
}

TEST(AnswerShape, WhatIsWrongInAFormatIsNamed) {
  const auto refused = [](const v1::OutputFormat& format) {
    const auto grammar = grammar_of(format);
    EXPECT_FALSE(grammar.has_value());
    return grammar ? Error() : grammar.error();
  };
  v1::OutputFormat format;
  format.set_json_object(false);
  EXPECT_EQ(refused(format).extras->param, "format.json_object");

  format.set_json_schema(R"({"type": "object", "properties": {"a": {"not": {}}}})");
  const auto keyword = refused(format);
  EXPECT_EQ(keyword.reason, Reason::kInvalidArgument);
  EXPECT_EQ(keyword.extras->param, "format.json_schema");
  EXPECT_THAT(keyword.message, HasSubstr("not"));
  EXPECT_THAT(keyword.message, HasSubstr("/properties/a"));
  format.set_json_schema("{");
  EXPECT_EQ(refused(format).extras->param, "format.json_schema");
  format.set_json_schema("");
  EXPECT_EQ(refused(format).extras->param, "format.json_schema");

  format.set_grammar("root ::= \"a\"\nx ::= y");
  const auto line = refused(format);
  EXPECT_EQ(line.extras->param, "format.grammar");
  EXPECT_THAT(line.message, HasSubstr("line 2"));
  format.set_grammar("");
  EXPECT_EQ(refused(format).extras->param, "format.grammar");
}

TEST(AnswerShape, GrammarsAndSchemasThatBlowUpAreRefused) {
  v1::OutputFormat format;
  format.set_grammar("root ::= (((\"a\"{1,1000}){1,1000}){1,1000}){1,1000}");
  EXPECT_FALSE(grammar_of(format).has_value());
  format.set_grammar("root ::= root \"a\" | \"b\"");
  EXPECT_FALSE(grammar_of(format).has_value());
  std::string schema = R"({"anyOf": [)";
  for (int i = 0; i < 10'000; ++i) {
    schema += R"({"$ref": "#"},)";
  }
  schema.back() = ']';
  schema += "}";
  format.set_json_schema(schema);
  EXPECT_FALSE(grammar_of(format).has_value());
}

TEST(AnswerShape, AGrammarBeginsBehindTheReasoning) {
  SamplingSettings sampling;
  EXPECT_TRUE(begin_after_reasoning({}, {}, sampling).has_value());
  EXPECT_THAT(sampling.grammar_triggers, IsEmpty());
  AnswerForm form;
  form.reasoning_open = "<think>";
  form.reasoning_close = "</think>";
  EXPECT_TRUE(begin_after_reasoning(form, {}, sampling).has_value());
  EXPECT_THAT(sampling.grammar_triggers, IsEmpty());
  form.starts_in_reasoning = true;
  EXPECT_TRUE(begin_after_reasoning(form, {}, sampling).has_value());
  EXPECT_THAT(sampling.grammar_triggers, ElementsAre("</think>"));
}

TEST(AnswerShape, InHarmonyTheChannelsAreAPartOfTheGrammar) {
  AnswerForm form;
  form.tools = ToolForm::kHarmony;
  v1::OutputFormat format;
  format.set_grammar(R"(root ::= "yes")");
  SamplingSettings sampling;
  ASSERT_TRUE(apply_format(format, sampling).has_value());
  ASSERT_TRUE(begin_after_reasoning(form, format, sampling).has_value());
  EXPECT_THAT(sampling.grammar_triggers, IsEmpty());
  EXPECT_THAT(sampling.grammar, HasSubstr("<|channel|>final"));

  // A forced call has its own.
  sampling.grammar = R"(root ::= "call")";
  ASSERT_TRUE(begin_after_reasoning(form, {}, sampling).has_value());
  EXPECT_EQ(sampling.grammar, R"(root ::= "call")");
  EXPECT_THAT(sampling.grammar_triggers, IsEmpty());
}

TEST(AnswerShape, WhatDoesNotGoTogetherSaysWhatToLeaveOut) {
  v1::GenerateRequest request;
  request.mutable_format()->set_json_object(true);
  ChatTools tools;
  EXPECT_TRUE(check_combination(request, tools).has_value());
  tools.tools.push_back({0, "clock", {}});
  const auto both = check_combination(request, tools);
  ASSERT_FALSE(both.has_value());
  EXPECT_EQ(both.error().extras->param, "format");
  EXPECT_THAT(both.error().message, HasSubstr("Leave"));

  request.mutable_sampling()->set_ignore_eos(true);
  const auto endless = check_combination(request, {});
  ASSERT_FALSE(endless.has_value());
  EXPECT_EQ(endless.error().extras->param, "sampling.ignore_eos");
  request.clear_format();
  EXPECT_TRUE(check_combination(request, tools).has_value());
  tools.choice.kind = Kind::kRequired;
  EXPECT_FALSE(check_combination(request, tools).has_value());
}

}  // namespace
}  // namespace berth::worker
