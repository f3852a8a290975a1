#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/worker/answer/parsed_answer.h"
#include "worker/answer/answer_parser.h"

// Megabytes that a broken or hostile model may write. Work that grows with the square of the text,
// or recursion that follows its nesting, would not end within the test's time or stack.

namespace berth::worker {
namespace {

constexpr std::array<ToolForm, 7> kToolForms{
    ToolForm::kHermes,       ToolForm::kLlama3,  ToolForm::kMistral, ToolForm::kJson,
    ToolForm::kMistralNamed, ToolForm::kHarmony, ToolForm::kDeepSeek};

AnswerForm with_tools(ToolForm tools) {
  return {tools, "", "", false};
}

std::string repeat(std::string_view text, std::size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += text;
  return out;
}

constexpr std::size_t kBytes = std::size_t{1} << 18U;

TEST(HostileAnswer, RepeatedTextIsContentInEveryForm) {
  for (const std::string_view part :
       {"<tool_call>", "<", "{", "[", "{\"a\":", "[TOOL_CALLS]", "[TOOL_CALLS][", "<|python_tag|>{",
        "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call",
        "<tool_call>{\"name\":\"", "<tool_call>{\"arguments\":{},", "\n", "`", "```json\n",
        "{\"type\":", "{\"function\":", "<tool_call>{\"function\":{"}) {
    const auto text = repeat(part, kBytes);
    const auto pieces = cut(text, 1);
    for (const auto tools : kToolForms) {
      SCOPED_TRACE(std::string(part) + " in form " + std::to_string(static_cast<int>(tools)));
      const auto whole = parse_pieces(with_tools(tools), {text});
      EXPECT_TRUE(whole.content == text);
      EXPECT_TRUE(whole.calls.empty());
      EXPECT_TRUE(parse_pieces(with_tools(tools), pieces) == whole);
    }
  }
}

TEST(HostileAnswer, DeepArgumentsArePassedOn) {
  for (const std::string_view part : {"[", "{\"a\":", "{\"a\":["}) {
    const auto arguments = "{\"x\":" + repeat(part, 100000 * part.size());
    const auto text = "<tool_call>{\"name\":\"f\",\"arguments\":" + arguments;
    const auto answer = parse_pieces(with_tools(ToolForm::kHermes), cut(text, 7));
    ASSERT_EQ(answer.calls.size(), 1U);
    EXPECT_TRUE(answer.calls[0].arguments == arguments);
    EXPECT_TRUE(answer.content.empty());
  }
}

TEST(HostileAnswer, AnnouncedArgumentsHaveNoBound) {
  const auto arguments =
      "{\"x\":\"" + repeat("<tool_call>", 5 * CallsReader::kMaxHeldBytes) + "\"}";
  const auto text = "[TOOL_CALLS]f[ARGS]" + arguments;
  const auto answer = parse_pieces(with_tools(ToolForm::kMistralNamed), cut(text, 1000));
  ASSERT_EQ(answer.calls.size(), 1U);
  EXPECT_TRUE(answer.calls[0].arguments == arguments);
}

TEST(HostileAnswer, WhatIsHeldBackIsBounded) {
  const auto text = "<tool_call>{\"arguments\":\"" + repeat("ab", 2 * CallsReader::kMaxHeldBytes) +
                    "\",\"name\":\"f\"}</tool_call>";
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, text.size()}) {
    auto parser = make_parser(with_tools(ToolForm::kHermes));
    AnswerDelta delta;
    ParsedAnswer answer;
    for (std::size_t at = 0; at < text.size(); at += size) {
      delta.clear();
      parser.push(std::string_view(text).substr(at, size), delta);
      answer.add(delta);
      const auto pushed = std::min(text.size(), at + size);
      ASSERT_LE(pushed - answer.content.size(), CallsReader::kMaxHeldBytes + 64);
    }
    delta.clear();
    parser.finish(delta);
    answer.add(delta);
    EXPECT_TRUE(answer.calls.empty());
    EXPECT_TRUE(answer.content == text);
  }
}

TEST(HostileAnswer, WhitespaceIsNotGathered) {
  const auto call = std::string("<tool_call>{\"name\":\"f\"}</tool_call>");
  const auto spaces = repeat(" \n", kBytes);
  const auto answer = parse_answer(with_tools(ToolForm::kHermes), call + spaces + call + spaces);
  EXPECT_TRUE(answer.content.empty());
  EXPECT_EQ(answer.calls.size(), 2U);
  // Ahead of a call it is content once there is too much of it.
  EXPECT_TRUE(parse_answer(with_tools(ToolForm::kHermes), spaces + call).content == spaces);
}

TEST(HostileAnswer, NewlinesOfReasoningAreCounted) {
  const auto newlines = repeat("\n", kBytes);
  const AnswerForm form{ToolForm::kNone, "<think>", "</think>", false};
  EXPECT_EQ(parse_answer(form, "<think>" + newlines + "x" + newlines + "</think>" + newlines + "y"),
            (ParsedAnswer{"y", "x", {}}));
}

TEST(HostileAnswer, LongNamesAndKeysAreNoCalls) {
  const auto form = with_tools(ToolForm::kHermes);
  const auto long_text = repeat("n", kBytes);
  for (const auto& text : {"<tool_call>{\"name\":\"" + long_text + "\"}</tool_call>",
                           "<tool_call>{\"" + long_text + "\":1,\"name\":\"f\"}</tool_call>"}) {
    const auto answer = parse_answer(form, text);
    EXPECT_TRUE(answer.content == text);
    EXPECT_TRUE(answer.calls.empty());
  }
  const auto header = "<|channel|>" + long_text + "<|message|>x";
  EXPECT_TRUE(parse_answer(with_tools(ToolForm::kHarmony), header).content == header);
}

TEST(HostileAnswer, ManyCallsAreMany) {
  const std::string call = "<tool_call>{\"name\":\"f\"}</tool_call>";
  const auto text = repeat(call, kBytes);
  const auto answer = parse_answer(with_tools(ToolForm::kHermes), text);
  EXPECT_TRUE(answer.content.empty());
  EXPECT_EQ(answer.calls.size(), text.size() / call.size());
}

}  // namespace
}  // namespace berth::worker
