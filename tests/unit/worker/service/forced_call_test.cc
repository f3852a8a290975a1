#include "worker/service/forced_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/worker/grammar/gbnf_matcher.h"
#include "worker/answer/answer_parser.h"
#include "worker/grammar/gbnf_check.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;
using Kind = ToolChoice::Kind;

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}},
  {"type": "function", "function": {"name": "clock"}}])";

ChatTools tools_of(const std::string& json, ToolChoice choice) {
  auto tools = read_tools(json);
  EXPECT_TRUE(tools.has_value());
  return {std::move(choice), std::move(*tools)};
}
ChatTools required() {
  return tools_of(kTools, {Kind::kRequired, {}});
}
ChatTools named(const std::string& name) {
  return tools_of(kTools, {Kind::kNamed, name});
}

struct Forced {
  AnswerForm form;
  std::string grammar;
};

Forced forced(ToolForm tools_form, const ChatTools& tools, bool starts_in_reasoning = false) {
  Forced made;
  made.form.tools = tools_form;
  if (starts_in_reasoning) {
    made.form.reasoning_open = "<think>";
    made.form.reasoning_close = "</think>";
    made.form.starts_in_reasoning = true;
  }
  SamplingSettings sampling;
  const auto applied = apply_forced_call(tools, made.form, sampling);
  EXPECT_TRUE(applied.has_value()) << applied.error().message;
  made.grammar = sampling.grammar;
  EXPECT_TRUE(check_gbnf(made.grammar, GbnfBounds::kConverterBytes).has_value()) << made.grammar;
  return made;
}

TEST(ForcedCall, IsWrittenAsTheModelDoes) {
  struct Case {
    ToolForm form;
    const char* part;
    ToolForm required;
  };
  for (const auto& one : {
           Case{ToolForm::kHermes, "<tool_call>", ToolForm::kHermes},
           Case{ToolForm::kLlama3, "parameters", ToolForm::kLlama3},
           Case{ToolForm::kMistral, "[TOOL_CALLS][", ToolForm::kMistral},
           Case{ToolForm::kJson, "arguments", ToolForm::kJson},
           Case{ToolForm::kNone, "arguments", ToolForm::kJson},
           Case{ToolForm::kHarmony, "arguments", ToolForm::kJson},
           Case{ToolForm::kDeepSeek, "arguments", ToolForm::kJson},
           Case{ToolForm::kMistralNamed, "arguments", ToolForm::kJson},
       }) {
    const auto made = forced(one.form, required());
    EXPECT_EQ(made.form.tools, one.required);
    EXPECT_THAT(made.grammar, HasSubstr(one.part));
    EXPECT_THAT(made.grammar, HasSubstr("weather"));
    EXPECT_THAT(made.grammar, HasSubstr("clock"));
    EXPECT_EQ(forced(one.form, named("clock")).grammar.find("weather"), std::string::npos);
  }
}

TEST(ForcedCall, NamesBeforeTheJsonAreForOneToolOnly) {
  for (const auto form : {ToolForm::kMistralNamed, ToolForm::kDeepSeek, ToolForm::kHarmony}) {
    EXPECT_EQ(forced(form, named("weather")).form.tools, form);
    const auto one = tools_of(R"([{"function": {"name": "clock"}}])", {Kind::kRequired, {}});
    EXPECT_EQ(forced(form, one).form.tools, form);
    EXPECT_EQ(forced(form, required()).form.tools, ToolForm::kJson);
  }
  EXPECT_THAT(forced(ToolForm::kMistralNamed, named("weather")).grammar,
              HasSubstr("[TOOL_CALLS]weather[ARGS]"));
  // After reasoning in its own channel or tags the call is plain JSON.
  const auto thinking = forced(ToolForm::kDeepSeek, named("weather"), true);
  EXPECT_EQ(thinking.form.tools, ToolForm::kJson);
  EXPECT_TRUE(thinking.form.starts_in_reasoning);
}

// What the grammars let through is a call for the parser.
TEST(ForcedCall, IsReadAsACall) {
  struct Case {
    ToolForm form;
    const char* text;
  };
  for (const auto& one : {
           Case{ToolForm::kHermes,
                "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"x\"}}\n"
                "</tool_call>"},
           Case{ToolForm::kLlama3, R"({"name": "weather", "parameters": {"city": "x"}})"},
           Case{ToolForm::kMistral,
                R"([TOOL_CALLS][{"name": "weather", "arguments": {"city": "x"}}])"},
           Case{ToolForm::kJson, R"({"name": "weather", "arguments": {"city": "x"}})"},
           Case{ToolForm::kMistralNamed, R"([TOOL_CALLS]weather[ARGS]{"city": "x"})"},
           Case{ToolForm::kDeepSeek,
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"x\"}"
                "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
           Case{ToolForm::kHarmony,
                "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>"
                "{\"city\": \"x\"}"},
       }) {
    const auto form = forced(one.form, named("weather")).form;
    EXPECT_EQ(form.tools, one.form);
    AnswerParser parser(form, {{"weather", "clock"}, {}});
    AnswerDelta delta;
    parser.push(one.text, delta);
    parser.finish(delta);
    EXPECT_EQ(delta.content, "") << one.text;
    std::string arguments;
    for (const auto& call : delta.tool_calls) arguments += call.arguments;
    ASSERT_FALSE(delta.tool_calls.empty()) << one.text;
    EXPECT_EQ(delta.tool_calls[0].name, "weather");
    EXPECT_EQ(arguments, R"({"city": "x"})");
  }
}

// Arguments are an object in a header's form too.
TEST(ForcedCall, ArgumentsAreAnObjectWhateverParametersAllow) {
  for (const char* const parameters : {"{}", R"({"type": ["object", "null"]})"}) {
    const auto tools =
        tools_of(std::string(R"([{"function": {"name": "f", "parameters": )") + parameters + "}}]",
                 {Kind::kRequired, {}});
    test::GbnfMatcher matcher(forced(ToolForm::kMistralNamed, tools).grammar);
    EXPECT_TRUE(matcher.matches(R"([TOOL_CALLS]f[ARGS]{"a": 1})")) << parameters;
    EXPECT_FALSE(matcher.matches("[TOOL_CALLS]f[ARGS]null")) << parameters;
    EXPECT_FALSE(matcher.matches("[TOOL_CALLS]f[ARGS]5")) << parameters;
  }
}

TEST(ForcedCall, ToolsThatNoGrammarCanHaveAreRefused) {
  for (const auto form_tools : {ToolForm::kHermes, ToolForm::kMistralNamed}) {
    AnswerForm form;
    form.tools = form_tools;
    SamplingSettings sampling;
    constexpr const char* kOdd =
        R"([{"function": {"name": "a", "parameters": {"not": {}}}}, {"function": {"name": "b"}}])";
    const auto applied = apply_forced_call(tools_of(kOdd, {Kind::kRequired, {}}), form, sampling);
    ASSERT_FALSE(applied.has_value());
    EXPECT_EQ(applied.error().extras->param, "chat.tools_json");
    // Which nobody compiles where another one is named.
    EXPECT_FALSE(
        apply_forced_call(tools_of(kOdd, {Kind::kNamed, "a"}), form, sampling).has_value());
    EXPECT_TRUE(apply_forced_call(tools_of(kOdd, {Kind::kNamed, "b"}), form, sampling).has_value());
  }
}

}  // namespace
}  // namespace berth::worker
