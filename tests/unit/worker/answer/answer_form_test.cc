#include "worker/answer/answer_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::worker {
namespace {

using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

ToolForm tools_of(std::string_view source) {
  return detect_answer_form(source, "", PromptTools::kByTemplate).tools;
}

TEST(AnswerForm, ComesFromTheTemplate) {
  EXPECT_EQ(tools_of("{{ '<tool_call>\\n{\"name\": ' }}"), ToolForm::kHermes);
  EXPECT_EQ(tools_of("<tool_call>{{ name }}<arg_key>"), ToolForm::kNone);
  EXPECT_EQ(tools_of("<tool_call><function=x>"), ToolForm::kNone);
  EXPECT_EQ(tools_of("<|start_header_id|> <|python_tag|>"), ToolForm::kLlama3);
  EXPECT_EQ(tools_of("<|start_header_id|> if tools … parameters"), ToolForm::kLlama3);
  EXPECT_EQ(tools_of("[TOOL_CALLS] [{"), ToolForm::kMistral);
  EXPECT_EQ(tools_of("[TOOL_CALLS]{{ name }}[ARGS]"), ToolForm::kMistralNamed);
  EXPECT_EQ(tools_of("<｜tool▁calls▁begin｜> <tool_call>"), ToolForm::kDeepSeek);
  EXPECT_EQ(tools_of("<|start|>assistant<|channel|>final<|message|>"), ToolForm::kHarmony);
  EXPECT_EQ(tools_of("<|im_start|>"), ToolForm::kJson);
  EXPECT_EQ(tools_of(""), ToolForm::kJson);
}

TEST(AnswerForm, HasNoToolsWhereNoneAreGiven) {
  EXPECT_EQ(detect_answer_form("<tool_call>", "", PromptTools::kNone).tools, ToolForm::kNone);
  EXPECT_EQ(detect_answer_form("<|channel|><|message|>", "", PromptTools::kNone).tools,
            ToolForm::kHarmony);
}

// The prompt asks for plain JSON then, whatever the template's own calls look like.
TEST(AnswerForm, IsJsonWhereTheToolsWereDescribed) {
  for (const auto* const source : {"<｜tool▁call▁begin｜> <think>", "[TOOL_CALLS] <think>",
                                   "<tool_call><arg_key> <think>", "<|python_tag|> <think>"}) {
    const auto form = detect_answer_form(source, "<think>\n", PromptTools::kDescribed);
    EXPECT_EQ(form.tools, ToolForm::kJson) << source;
    EXPECT_EQ(form.reasoning_close, "</think>") << source;
    EXPECT_TRUE(form.starts_in_reasoning) << source;
  }
  EXPECT_EQ(detect_answer_form("<|channel|><|message|>", "", PromptTools::kDescribed).tools,
            ToolForm::kHarmony);
}

TEST(AnswerForm, KnowsWhetherReasoningIsOpenAlready) {
  constexpr std::string_view kSource = "… content.split('</think>') … '<think>\\n'";
  const auto opened =
      detect_answer_form(kSource, "<|im_start|>assistant\n<think>\n", PromptTools::kNone);
  EXPECT_EQ(opened.reasoning_open, "<think>");
  EXPECT_EQ(opened.reasoning_close, "</think>");
  EXPECT_TRUE(opened.starts_in_reasoning);
  // Thinking is off, or left to the model.
  EXPECT_FALSE(detect_answer_form(kSource, "<think>\n\n</think>\n\n", PromptTools::kNone)
                   .starts_in_reasoning);
  EXPECT_FALSE(detect_answer_form(kSource, "assistant\n", PromptTools::kNone).starts_in_reasoning);
  // A template without reasoning, whatever the prompt ends with.
  const auto plain = detect_answer_form("<|im_start|>", "<think>", PromptTools::kNone);
  EXPECT_EQ(plain.reasoning_open, "");
  EXPECT_FALSE(plain.starts_in_reasoning);
  EXPECT_EQ(detect_answer_form("[THINK]", "", PromptTools::kByTemplate).reasoning_close,
            "[/THINK]");
  EXPECT_EQ(detect_answer_form("<|END_THINKING|>", "", PromptTools::kByTemplate).reasoning_open,
            "<|START_THINKING|>");
  EXPECT_TRUE(detect_answer_form("<|channel|><|message|>", "<|channel|>analysis<|message|>",
                                 PromptTools::kByTemplate)
                  .starts_in_reasoning);
}

TEST(AnswerForm, NamesTheControlTextsItNeeds) {
  EXPECT_THAT(needed_control_texts({}), IsEmpty());
  EXPECT_THAT(needed_control_texts({ToolForm::kHermes, "<think>", "</think>", false}),
              IsSupersetOf({"<think>", "</think>", "<tool_call>", "</tool_call>"}));
  const auto texts = [](ToolForm tools) { return needed_control_texts({tools, "", "", false}); };
  EXPECT_THAT(texts(ToolForm::kMistral), IsSupersetOf({"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"}));
  EXPECT_THAT(texts(ToolForm::kLlama3), IsSupersetOf({"<|python_tag|>"}));
  EXPECT_THAT(texts(ToolForm::kHarmony), IsSupersetOf({"<|channel|>", "<|message|>", "<|end|>"}));
  EXPECT_THAT(texts(ToolForm::kDeepSeek),
              IsSupersetOf({"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁calls▁end｜>"}));
}

}  // namespace
}  // namespace berth::worker
