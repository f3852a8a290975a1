#include "worker/service/chat_tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace berth::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = ToolChoice::Kind;

constexpr const char* kTwo = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}},
  {"type": "function", "function": {"name": "clock"}}])";

v1::ChatInput chat(const std::string& tools, const std::string& choice) {
  v1::ChatInput made;
  made.set_tools_json(tools);
  made.set_tool_choice_json(choice);
  return made;
}

Error problem(const std::string& tools, const std::string& choice) {
  const auto checked = check_chat_tools(chat(tools, choice));
  EXPECT_FALSE(checked.has_value());
  if (checked) return {};
  EXPECT_EQ(checked.error().reason, Reason::kInvalidArgument);
  return checked.error();
}

TEST(ChatTools, NoneAreAllowedAndAutoIsTheDefault) {
  for (const char* const choice : {"", "null", R"("auto")"}) {
    const auto checked = check_chat_tools(chat("", choice));
    ASSERT_TRUE(checked.has_value()) << choice;
    EXPECT_EQ(checked->choice.kind, Kind::kAuto);
    EXPECT_THAT(checked->names(), IsEmpty());
  }
}

TEST(ChatTools, NamesComeInTheirOrder) {
  const auto checked = check_chat_tools(chat(kTwo, R"("required")"));
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->choice.kind, Kind::kRequired);
  EXPECT_THAT(checked->names(), ElementsAre("weather", "clock"));
}

TEST(ChatTools, ANamedFunctionIsOneOfThem) {
  const auto checked =
      check_chat_tools(chat(kTwo, R"({"type": "function", "function": {"name": "clock"}})"));
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->choice.kind, Kind::kNamed);
  EXPECT_EQ(checked->choice.name, "clock");

  const auto error = problem(kTwo, R"({"type": "function", "function": {"name": "clok"}})");
  EXPECT_EQ(error.extras->param, "chat.tool_choice_json");
  EXPECT_THAT(error.extras->suggestions, ElementsAre("clock"));
}

TEST(ChatTools, NoneMeansThatTheModelDoesNotHearOfThem) {
  const auto checked = check_chat_tools(chat(kTwo, R"("none")"));
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->choice.kind, Kind::kNone);
  EXPECT_THAT(checked->names(), IsEmpty());
}

TEST(ChatTools, ACallNeedsTools) {
  for (const char* const tools : {"", "[]"}) {
    const auto error = problem(tools, R"("required")");
    EXPECT_EQ(error.extras->param, "chat.tool_choice_json");
    EXPECT_THAT(error.message, HasSubstr("Add chat.tools_json"));
  }
}

TEST(ChatTools, WhatIsNoToolIsNamed) {
  for (const char* const tools : {
           R"([{"type": "function", "function": {"name": "a"}}, {}])",
           R"([{"type": "function", "function": {"name": "a"}}, 1])",
           R"([{"type": "function", "function": {"name": "a"}}, {"function": {"name": ""}}])",
           R"([{"type": "function", "function": {"name": "a"}}, {"function": {"name": 7}}])",
           R"([{"type": "function", "function": {"name": "a"}}, {"function": {"name": "a"}}])",
       }) {
    const auto error = problem(tools, "");
    EXPECT_EQ(error.extras->param, "chat.tools_json");
    EXPECT_THAT(error.message, HasSubstr("tools[1]")) << tools;
  }
}

TEST(ChatTools, WhatIsNoJsonIsRefused) {
  EXPECT_EQ(problem("[", "").extras->param, "chat.tools_json");
  EXPECT_EQ(problem("{}", "").extras->param, "chat.tools_json");
  EXPECT_EQ(problem(std::string(100'000, '['), "").extras->param, "chat.tools_json");
  EXPECT_EQ(problem("[\"\xff\"]", "").extras->param, "chat.tools_json");
  for (const char* const choice : {"auto", R"("all")", "7", "{}", R"({"function": {"name": 1}})"}) {
    EXPECT_EQ(problem(kTwo, choice).extras->param, "chat.tool_choice_json") << choice;
  }
  EXPECT_EQ(problem(kTwo, std::string(1 << 20, ' ')).extras->param, "chat.tool_choice_json");
}

std::string many(int count, std::size_t description) {
  std::string tools = "[";
  for (int i = 0; i < count; ++i) {
    tools += R"({"function": {"name": "f)" + std::to_string(i) + R"(", "description": ")" +
             std::string(description, 'd') + "\"}},";
  }
  tools.back() = ']';
  return tools;
}

TEST(ChatTools, TheBoundsAreTheSameForEveryChoice) {
  const auto choices = {R"("auto")", R"("none")", R"("required")",
                        R"({"type": "function", "function": {"name": "f0"}})"};
  for (const std::string choice : choices) {
    EXPECT_TRUE(check_chat_tools(chat(many(256, 10), choice)).has_value()) << choice;
    EXPECT_THAT(problem(many(257, 10), choice).message, HasSubstr("257 tools")) << choice;
    EXPECT_THAT(problem(many(2, 200'000), choice).message, HasSubstr("256 KiB")) << choice;
    const auto other = problem(
        R"([{"function": {"name": "f0"}}, {"type": "web", "function": {"name": "b"}}])", choice);
    EXPECT_THAT(other.message, HasSubstr("tools[1]")) << choice;
    EXPECT_EQ(other.extras->param, "chat.tools_json");
  }
}

}  // namespace
}  // namespace berth::worker
