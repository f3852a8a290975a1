#include "worker/answer/answer_parser.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/answer/parsed_answer.h"

namespace berth::worker {
namespace {

AnswerForm with_tools(ToolForm tools) {
  AnswerForm form;
  form.tools = tools;
  return form;
}

AnswerForm thinking(ToolForm tools, bool starts_in_reasoning = false) {
  return {tools, "<think>", "</think>", starts_in_reasoning};
}

ParsedAnswer content(std::string text) {
  return {std::move(text), "", {}};
}
ParsedAnswer calls(std::vector<ParsedAnswer::Call> list) {
  return {"", "", std::move(list)};
}

TEST(AnswerParser, PassesTextOfAPlainFormOnAtOnce) {
  auto parser = make_parser({});
  AnswerDelta out;
  parser.push(" \n<think> <tool_call>{", out);
  EXPECT_EQ(out.content, " \n<think> <tool_call>{");
  EXPECT_TRUE(out.reasoning.empty() && out.tool_calls.empty());
}

TEST(AnswerParser, GivesIdsOfTheMaker) {
  int made = 0;
  AnswerParser parser(with_tools(ToolForm::kHermes),
                      {.tools = {"f"}, .make_id = [&] { return "id" + std::to_string(++made); }});
  AnswerDelta out;
  parser.push("<tool_call>{\"name\":\"f\"}</tool_call><tool_call>{\"name\":\"f\"}", out);
  ASSERT_EQ(out.tool_calls.size(), 2U);
  EXPECT_EQ(out.tool_calls[0], (ToolCallDelta{0, "id1", "f", "{}"}));
  EXPECT_EQ(out.tool_calls[1], (ToolCallDelta{1, "id2", "f", "{}"}));
}

// Reasoning.

TEST(Reasoning, IsSplitFromTheAnswer) {
  const auto form = thinking(ToolForm::kNone);
  EXPECT_EQ(parse_answer(form, "<think>\nHm.\nYes.\n</think>\n\nHello <think>x</think>"),
            (ParsedAnswer{"Hello <think>x</think>", "Hm.\nYes.", {}}));
  EXPECT_EQ(parse_answer(form, "\n <think></think>x\n"), content("x\n"));
  EXPECT_EQ(parse_answer(form, "Say <think>."), content("Say <think>."));
  EXPECT_EQ(parse_answer(form, "  <thin"), content("  <thin"));
}

TEST(Reasoning, MayHaveBegunInThePrompt) {
  const auto form = thinking(ToolForm::kNone, true);
  EXPECT_EQ(parse_answer(form, "Hm. <b></b>\n</think>\nA"), (ParsedAnswer{"A", "Hm. <b></b>", {}}));
  EXPECT_EQ(parse_answer(form, "<think>\nHm</think>A"), (ParsedAnswer{"A", "Hm", {}}));
  EXPECT_EQ(parse_answer(form, "\n Hm</think>A"), (ParsedAnswer{"A", " Hm", {}}));
}

TEST(Reasoning, ThatIsNeverClosedIsAllThereIs) {
  EXPECT_EQ(parse_answer(thinking(ToolForm::kHermes, true), "Hm <tool_call>\n</thin"),
            (ParsedAnswer{"", "Hm <tool_call>\n</thin", {}}));
  EXPECT_EQ(parse_answer(thinking(ToolForm::kJson), "<think>a\n\n"),
            (ParsedAnswer{"", "a\n\n", {}}));
}

TEST(Reasoning, StreamsAllThatIsCertain) {
  auto parser = make_parser(thinking(ToolForm::kNone));
  AnswerDelta out;
  parser.push("<think>\nab </th", out);
  EXPECT_EQ(out.reasoning, "ab ");
  parser.push("is\n", out);
  EXPECT_EQ(out.reasoning, "ab </this");
  parser.push("c", out);
  EXPECT_EQ(out.reasoning, "ab </this\nc");
  parser.push("</think>\n\nX", out);
  EXPECT_EQ(out.content, "X");
}

TEST(Reasoning, GoesBeforeCalls) {
  EXPECT_EQ(parse_answer(thinking(ToolForm::kJson),
                         "<think>x</think>\n\n{\"name\":\"f\",\"arguments\":{}}"),
            (ParsedAnswer{"", "x", {{"f", "{}"}}}));
  EXPECT_EQ(
      parse_answer(thinking(ToolForm::kHermes, true),
                   "x\n</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"
                   "</tool_call>"),
      (ParsedAnswer{"", "x", {{"f", "{\"a\": 1}"}}}));
}

TEST(Reasoning, HasTheTagsOfItsTemplate) {
  EXPECT_EQ(parse_answer({ToolForm::kNone, "[THINK]", "[/THINK]", false}, "[THINK]a[/THINK]b"),
            (ParsedAnswer{"b", "a", {}}));
}

// Hermes.

TEST(Hermes, ReadsOneCallAfterSomeText) {
  EXPECT_EQ(
      parse_answer(with_tools(ToolForm::kHermes),
                   "I look. <tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                   "{\"city\": \"K\\u00f6ln {\\\"\", \"n\": [1, {}]}}\n</tool_call>\n"),
      (ParsedAnswer{
          "I look. ", "", {{"get_weather", "{\"city\": \"K\\u00f6ln {\\\"\", \"n\": [1, {}]}"}}}));
}

TEST(Hermes, ReadsSeveralCalls) {
  const auto expected = calls({{"f", "{\"a\":1}"}, {"g-2", "{}"}});
  const auto form = with_tools(ToolForm::kHermes);
  EXPECT_EQ(parse_answer(form,
                         "\n<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n</tool_call>\n"
                         "<tool_call>\n{\"arguments\":{},\"name\":\"g-2\"}\n</tool_call>\n"),
            expected);
  // Within one pair of tags, as a list, or with a forgotten end.
  EXPECT_EQ(parse_answer(form,
                         "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}\n{\"name\":\"g-2\"}"
                         "</tool_call>"),
            expected);
  EXPECT_EQ(parse_answer(form,
                         "<tool_call>[{\"name\":\"f\",\"arguments\":{\"a\":1}}, {\"name\":\"g-2\"}]"
                         "</tool_call>"),
            expected);
  EXPECT_EQ(parse_answer(form,
                         "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}\n"
                         "<tool_call>{\"name\":\"g-2\"}"),
            expected);
}

TEST(Hermes, StreamsArguments) {
  auto parser = make_parser(with_tools(ToolForm::kHermes));
  AnswerDelta out;
  parser.push("a<tool_call>\n{\"name\": \"f\", \"arguments\"", out);
  EXPECT_EQ(out.content, "a");
  EXPECT_TRUE(out.tool_calls.empty());
  out.clear();
  parser.push(": {\"ci", out);
  ASSERT_EQ(out.tool_calls.size(), 1U);
  EXPECT_EQ(out.tool_calls[0], (ToolCallDelta{0, "call_0", "f", "{\"ci"}));
  out.clear();
  parser.push("ty\": \"B", out);
  EXPECT_EQ(out.tool_calls.at(0), (ToolCallDelta{0, "", "", "ty\": \"B"}));
  out.clear();
  parser.push("\"}}\n</tool_", out);
  EXPECT_EQ(out.tool_calls.at(0), (ToolCallDelta{0, "", "", "\"}"}));
  out.clear();
  parser.push("call>", out);
  parser.finish(out);
  EXPECT_TRUE(out.empty());
}

TEST(Hermes, ArgumentsWaitForTheName) {
  auto parser = make_parser(with_tools(ToolForm::kHermes));
  AnswerDelta out;
  parser.push("<tool_call>{\"arguments\": {\"a\": \"}\"}, \"id\": 5, \"name\": ", out);
  EXPECT_TRUE(out.empty());
  parser.push("\"f\"", out);
  EXPECT_EQ(out.tool_calls.at(0), (ToolCallDelta{0, "call_0", "f", "{\"a\": \"}\"}"}));
}

TEST(Hermes, DecodesArgumentsThatAreAString) {
  const auto form = with_tools(ToolForm::kHermes);
  EXPECT_EQ(parse_answer(form,
                         "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": "
                         "\\\"\\u20ac\\ud83d\\udea2\\\\n\\\"}\"}</tool_call>"),
            calls({{"f", "{\"a\": \"€🚢\\n\"}"}}));
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"arguments\":\"\",\"name\":\"f\"}</tool_call>"),
            calls({{"f", "{}"}}));
  // Halves of surrogate pairs and what is no escape.
  EXPECT_EQ(parse_answer(form,
                         "<tool_call>{\"name\":\"f\",\"arguments\":\"\\ud800 \\udc00\\ud800\\n\\q"
                         "\\u12x\\ud800\"}</tool_call>"),
            calls({{"f", "\uFFFD \uFFFD\uFFFD\n\\q\\u12x\uFFFD"}}));
}

TEST(Hermes, ReadsOpenAisNestedForm) {
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kHermes),
                         "<tool_call>{\"id\":\"x\",\"type\":\"function\",\"function\":{\"name\":"
                         "\"f\",\"arguments\":{\"a\":1}}}</tool_call>"),
            calls({{"f", "{\"a\":1}"}}));
}

TEST(Hermes, WhatIsNoCallIsContent) {
  const auto form = with_tools(ToolForm::kHermes);
  for (const std::string text : {
           "<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call> ",
           "<tool_call>\n{\"arguments\":{}}\n</tool_call>",
           "<tool_call>{\"name\":5}</tool_call>",
           "<tool_call>{\"name\":\"f\" \"arguments\":{}}</tool_call>",
           "<tool_call>{\"name\":\"f\", \"arguments\":[1]}</tool_call>",
           "<tool_call>{\"name\":\"f\", \"arguments\":null}</tool_call>",
           "<tool_call>{\"name\":\"f\", ",
           "<tool_call>{\"name\":\"f\n\"}",
           "<tool_call>{\"name\":\"\\q\"}",
           "<tool_call>{\"name\":\"\\ud800\"}",
           "<tool_call> [ ] </tool_call>",
           "\n\n<tool_call>",
           "<tool_call>f()</tool_call>",
           "</tool_call> a </tool_call>",
           " \n ",
           "",
           "a < b <tool_",
       }) {
    EXPECT_EQ(parse_answer(form, text), content(text));
  }
}

TEST(Hermes, ACallFollowsWhatIsNone) {
  EXPECT_EQ(
      parse_answer(with_tools(ToolForm::kHermes),
                   "<tool_call>{\"name\": \"f\n</tool_call>"
                   "<tool_call><tool_call>{\"name\":\"f\"}</tool_call>"),
      (ParsedAnswer{"<tool_call>{\"name\": \"f\n</tool_call><tool_call>", "", {{"f", "{}"}}}));
}

TEST(Hermes, FindsATagBehindTheStartOfOne) {
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kHermes),
                         "a<<tool_<tool_call>{\"name\":\"f\"}</tool_call>"),
            (ParsedAnswer{"a<<tool_", "", {{"f", "{}"}}}));
}

TEST(Hermes, KeepsTextBetweenAndBehindCalls) {
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kHermes),
                         "<tool_call>{\"name\":\"f\"}</tool_call>\nand\n"
                         "<tool_call>{\"name\":\"f\"}</tool_call>\n\n."),
            (ParsedAnswer{"and\n.", "", {{"f", "{}"}, {"f", "{}"}}}));
}

TEST(Hermes, SurvivesFaultsBehindTheName) {
  const auto form = with_tools(ToolForm::kHermes);
  // A brace too few, one too many, text within the tags, an end within the arguments.
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"name\":\"f\",\"arguments\":{}\n</tool_call>\n"),
            calls({{"f", "{}"}}));
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"name\":\"f\",\"arguments\":{}}}\n</tool_call>\nx"),
            (ParsedAnswer{"}\nx", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"name\":\"f\"} done </tool_call></tool_call>"),
            (ParsedAnswer{"done </tool_call>", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":</tool_call>"),
            calls({{"f", "{\"a\":"}}));
  // A second call that is none.
  EXPECT_EQ(parse_answer(form, "<tool_call>{\"name\":\"f\"}, {\"name\":\"rm\"}</tool_call>"),
            (ParsedAnswer{", {\"name\":\"rm\"}", "", {{"f", "{}"}}}));
}

// max_tokens may end an answer anywhere.
TEST(Hermes, AMarkThatWasCutOffIsContent) {
  const auto form = with_tools(ToolForm::kHermes);
  const std::string call = "<tool_call>{\"name\":\"f\"}";
  EXPECT_EQ(parse_answer(form, call + "\n</tool"), (ParsedAnswer{"</tool", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse_answer(form, call + "</tool_call>\n<tool_"),
            (ParsedAnswer{"<tool_", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse_answer(form, call + "\n<tool_call>"),
            (ParsedAnswer{"<tool_call>", "", {{"f", "{}"}}}));
}

TEST(Hermes, KeepsArgumentsAsTheyWereWritten) {
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kHermes),
                         "<tool_call>{\"name\":\"f\",\"arguments\": {\"a\": \"line\nline\", \"b\": "
                         "-1.5e3, \"c\": tru} , \"x\": [1, \"]\"], \"y\": null}</tool_call>"),
            calls({{"f", "{\"a\": \"line\nline\", \"b\": -1.5e3, \"c\": tru}"}}));
}

// Llama 3.

TEST(Llama3, ReadsMarkedAndBareCalls) {
  const auto form = with_tools(ToolForm::kLlama3);
  const std::string call = "{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}";
  const auto expected = calls({{"f", "{\"a\": \"b\"}"}});
  EXPECT_EQ(parse_answer(form, "<|python_tag|>" + call), expected);
  EXPECT_EQ(parse_answer(form, "\n\n" + call), expected);
  EXPECT_EQ(parse_answer(form, "{\"type\": \"function\", " + call.substr(1)), expected);
  EXPECT_EQ(parse_answer(form, call + "; " + call + ";\n" + call).calls.size(), 3U);
  EXPECT_EQ(parse_answer(form, call + "; thanks"),
            (ParsedAnswer{"; thanks", "", {{"f", "{\"a\": \"b\"}"}}}));
  EXPECT_EQ(parse_answer(form, "Text: <|python_tag|>" + call + "\n").content, "Text: ");
}

// As where something else follows: nothing is lost.
TEST(Llama3, ASeparatorAtTheEndIsContent) {
  const std::string call = "{\"name\": \"f\", \"parameters\": {}}";
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kLlama3), call + "; "),
            (ParsedAnswer{"; ", "", {{"f", "{}"}}}));
  EXPECT_EQ(parse_answer(with_tools(ToolForm::kLlama3), call + " \n"), calls({{"f", "{}"}}));
}

TEST(Llama3, OtherJsonAndCodeAreContent) {
  const auto form = with_tools(ToolForm::kLlama3);
  for (const std::string text : {
           " {\"city\": \"Paris\"}",
           "{\"name\": \"f\"}",
           "{\"name\": \"f\", \"description\": \"…\", \"parameters\": {}}",
           "{\"name\": \"Ada\", \"parameters\": {}}",
           "<|python_tag|>print({\"a\": 1})",
           "Use {\"name\": \"f\", \"parameters\": {}}",
           "[1, 2]",
       }) {
    EXPECT_EQ(parse_answer(form, text), content(text));
  }
}

TEST(Llama3, OtherJsonIsPassedOnAtItsFirstKey) {
  auto parser = make_parser(with_tools(ToolForm::kLlama3));
  AnswerDelta out;
  parser.push("{\"city\": [", out);
  EXPECT_EQ(out.content, "{\"city\": [");
}

// Mistral.

TEST(Mistral, ReadsTheList) {
  for (const auto tools : {ToolForm::kMistral, ToolForm::kMistralNamed}) {
    const auto form = with_tools(tools);
    EXPECT_EQ(parse_answer(form,
                           "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": []}, \"id\": "
                           "\"123456789\"}, {\"name\": \"g-2\", \"arguments\": {}}]"),
              calls({{"f", "{\"a\": []}"}, {"g-2", "{}"}}));
    EXPECT_EQ(parse_answer(form, "ok[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}] x"),
              (ParsedAnswer{"okx", "", {{"f", "{}"}}}));
    EXPECT_EQ(parse_answer(form,
                           "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}\n"
                           "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]"),
              calls({{"f", "{}"}, {"f", "{}"}}));
    EXPECT_EQ(parse_answer(form, "[TOOL_CALLS]{\"name\": \"f\", \"arguments\": {}}"),
              calls({{"f", "{}"}}));
  }
}

TEST(Mistral, ReadsTheNamedForm) {
  for (const auto tools : {ToolForm::kMistral, ToolForm::kMistralNamed}) {
    EXPECT_EQ(parse_answer(with_tools(tools),
                           "[TOOL_CALLS]f[ARGS]{\"a\": {\"b\": 1}}[TOOL_CALLS]g-2[CALL_ID]abc[ARGS]"
                           "{}\n[TOOL_CALLS] f{}"),
              calls({{"f", "{\"a\": {\"b\": 1}}"}, {"g-2", "{}"}, {"f", "{}"}}));
  }
}

TEST(Mistral, WhatIsNoCallIsContent) {
  const auto form = with_tools(ToolForm::kMistral);
  for (const std::string text : {
           "[TOOL_CALLS]",
           "[TOOL_CALLS] ",
           "[TOOL_CALLS][]",
           "[TOOL_CALLS][{\"name\":\"rm\",\"arguments\":{}}]",
           "[TOOL_CALLS]rm[ARGS]{}",
           "[TOOL_CALLS]f[WHAT]{}",
           "[TOOL_CALLS]f and {}",
           "[TOOL_CALLS]f[ARGS]",
           "[TOOL[TOOL_CAL",
           "[1, 2]",
       }) {
    EXPECT_EQ(parse_answer(form, text), content(text));
  }
}

// JSON.

TEST(Json, ReadsAnswersThatAreCalls) {
  const auto form = with_tools(ToolForm::kJson);
  const auto expected = calls({{"f", "{\"a\": 1}"}});
  for (const std::string text : {
           "{\"name\": \"f\", \"arguments\": {\"a\": 1}}",
           " {\"function\": \"f\", \"parameters\": {\"a\": 1}}\n",
           "{\"tool\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}",
           "[{\"tool_name\": \"f\", \"parameters\": {\"a\": 1}}]",
           "```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```\n",
           "```\n[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]\n```",
           "{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1}}}",
           "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]<|/tool_call|>",
           "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": "
           "{\"a\": 1}}\n]<|END_ACTION|>",
       }) {
    EXPECT_EQ(parse_answer(form, text), expected) << text;
  }
  EXPECT_EQ(parse_answer(form,
                         "[{\"name\": \"f\", \"arguments\": {}},\n {\"name\": \"f\", "
                         "\"arguments\": {}}, 5]"),
            (ParsedAnswer{", 5]", "", {{"f", "{}"}, {"f", "{}"}}}));
}

TEST(Json, MayStandBehindSomeWhitespace) {
  const auto form = with_tools(ToolForm::kJson);
  const std::string call = "{\"name\": \"f\", \"arguments\": {}}";
  EXPECT_EQ(parse_answer(form, std::string(255, ' ') + call), calls({{"f", "{}"}}));
  EXPECT_EQ(parse_answer(form, std::string(256, ' ') + call),
            content(std::string(256, ' ') + call));
}

TEST(Json, OtherAnswersAreContent) {
  const auto form = with_tools(ToolForm::kJson);
  for (const std::string text : {
           "{\"name\": \"Ada\", \"arguments\": {}}",
           "{\"name\": \"f\"}",
           "{\"arguments\": {\"a\": 1}}",
           "{\"answer\": {\"name\": \"f\", \"arguments\": {}}}",
           "[{\"a\": 1}]",
           "[]",
           "{}",
           "```python\nprint(1)\n```",
           "```json\n{\"a\": 1}\n```",
           "``",
           "```json",
           "`f` it is",
           "The call: {\"name\": \"f\", \"arguments\": {}}",
           "{\"arguments\": {\"a\": \"",
       }) {
    EXPECT_EQ(parse_answer(form, text), content(text));
  }
}

// DeepSeek.

TEST(DeepSeek, ReadsBothVersions) {
  const auto form = with_tools(ToolForm::kDeepSeek);
  const auto expected = calls({{"f", "{\"a\": 1}"}, {"g-2", "{}"}});
  EXPECT_EQ(
      parse_answer(form,
                   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
                   "{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
                   "<｜tool▁sep｜>g-2\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>\n"),
      expected);
  EXPECT_EQ(
      parse_answer(form,
                   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
                   "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g-2<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
                   "<｜tool▁calls▁end｜>"),
      expected);
}

TEST(DeepSeek, WhatIsNoCallIsContent) {
  const auto form = with_tools(ToolForm::kDeepSeek);
  for (const std::string text : {
           "<｜tool▁calls▁begin｜> text",
           "<｜tool▁calls▁begin｜>```<｜tool▁calls▁end｜>",
           "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>.",
           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>rm<｜tool▁sep｜>{}<｜tool▁call▁end｜>",
           "<｜tool▁call▁begin｜>f{}",
           "<｜tool▁call▁begin｜>other<｜tool▁sep｜>f\n```json\n{}",
           "<｜tool▁ca",
       }) {
    EXPECT_EQ(parse_answer(form, text), content(text));
  }
}

// gpt-oss.

TEST(Harmony, PartsChannels) {
  const auto form = with_tools(ToolForm::kHarmony);
  EXPECT_EQ(parse_answer(form,
                         "<|channel|>analysis<|message|>Hm <|x.<|end|><|start|>assistant<|channel|>"
                         "final<|message|>Hello\n<|return|>"),
            (ParsedAnswer{"Hello\n", "Hm <|x.", {}}));
  EXPECT_EQ(parse_answer(form, "Plain <|answer|>"), content("Plain <|answer|>"));
  EXPECT_EQ(parse_answer(form, " t"), content(" t"));
  auto inside = form;
  inside.starts_in_reasoning = true;
  EXPECT_EQ(parse_answer(inside, "Hm<|end|><|channel|>final<|message|>A"),
            (ParsedAnswer{"A", "Hm", {}}));
}

TEST(Harmony, ReadsCalls) {
  const auto form = with_tools(ToolForm::kHarmony);
  EXPECT_EQ(parse_answer(form,
                         "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>"
                         "commentary to=functions.f <|constrain|>json<|message|>{\"a\":1}<|call|>"),
            (ParsedAnswer{"", "Hm", {{"f", "{\"a\":1}"}}}));
  EXPECT_EQ(parse_answer(form, " to=functions.f<|channel|>commentary json<|message|>"),
            calls({{"f", "{}"}}));
  const std::string unknown = "<|channel|>commentary to=functions.rm json<|message|>{}<|call|>";
  EXPECT_EQ(parse_answer(form, unknown), content(unknown));
}

}  // namespace
}  // namespace berth::worker
