#include "worker/template/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/template/rendering.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

std::string problem(const ChatRequest& request) {
  const auto read = read_conversation(request, "");
  EXPECT_FALSE(read.has_value());
  if (read) return "";
  EXPECT_EQ(read.error().reason, Reason::kInvalidArgument);
  return read.error().message;
}
std::string problem(std::string_view messages, std::string_view tools = "") {
  return problem(ChatRequest{messages, tools, {}, true});
}

Json messages_of(std::string_view json, std::string_view source = "") {
  auto read = read_conversation(ChatRequest{json, {}, {}, true}, source);
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return read ? std::move(read->messages) : Json::array({Json::object()});
}

TEST(Conversation, JoinsTextParts) {
  const auto messages = messages_of(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(messages[0]["content"], "ab");
}

TEST(Conversation, SaysWhichMessageIsWrong) {
  EXPECT_THAT(problem("not json"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem("[{\"role\":\"user\",\"content\":\"\xff\"}]"), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem(R"({"role":"user"})"), HasSubstr("array, not object"));
  EXPECT_THAT(problem("[]"), HasSubstr("empty"));
  EXPECT_THAT(problem(R"([{"role":"user","content":"x"},7])"), HasSubstr("messages[1]"));
  EXPECT_THAT(problem(R"([{"content":"x"}])"), HasSubstr("messages[0] has no role"));
  EXPECT_THAT(problem(R"([{"role":1,"content":"x"}])"), HasSubstr("messages[0].role"));
  EXPECT_THAT(problem(R"([{"role":"user"}])"), HasSubstr("messages[0] has no content"));
  EXPECT_THAT(problem(R"([{"role":"user","content":null}])"), HasSubstr("has no content"));
  EXPECT_THAT(problem(R"([{"role":"user","content":5}])"), HasSubstr("not number"));
  EXPECT_THAT(problem(R"([{"role":"user","content":"x","tool_calls":3}])"),
              HasSubstr("messages[0].tool_calls"));
  EXPECT_THAT(problem(R"([{"role":"assistant","content":"x","reasoning_content":1}])"),
              HasSubstr("messages[0].reasoning_content"));
  EXPECT_THAT(problem(kHello, "{}"), HasSubstr("The tools"));
  EXPECT_THAT(problem(kHello, "[3]"), HasSubstr("tools[0]"));
  EXPECT_THAT(problem(ChatRequest{kHello, {}, "[]", true}), HasSubstr("variables must be"));
}

TEST(Conversation, SaysThatItSeesNoImages) {
  EXPECT_THAT(problem(R"([{"role":"user","content":"a"},
                  {"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])"),
              HasSubstr("messages[1].content[0]: images are not supported by this model"));
  EXPECT_THAT(problem(R"([{"role":"user","content":[{"type":"input_audio"}]}])"),
              HasSubstr("messages[0].content[0] is not a text part"));
}

TEST(Conversation, DeveloperIsSystemForTemplatesThatDoNotKnowIt) {
  constexpr std::string_view kDeveloper = R"([{"role":"developer","content":"x"}])";
  EXPECT_EQ(messages_of(kDeveloper)[0]["role"], "system");
  EXPECT_EQ(messages_of(kDeveloper, "{% if role == 'developer' %}")[0]["role"], "developer");
}

// A template that prints "<|" + role + "|>" would print the end of a message.
TEST(Conversation, TakesNoRoleThatTheTemplateDoesNotName) {
  EXPECT_THAT(problem(R"([{"role":"end","content":"x"}])"),
              HasSubstr("messages[0].role is \"end\""));
  EXPECT_EQ(messages_of(R"([{"role":"ipython","content":"x"}])", "== 'ipython'")[0]["role"],
            "ipython");
}

TEST(Conversation, BringsToolCallsIntoOneForm) {
  const auto messages = messages_of(R"([{"role":"assistant","content":null,"tool_calls":[
      {"id":"1","function":{"name":"f","arguments":"{\"a\":1}"}},
      {"id":"2","type":"function","function":{"name":"g","arguments":{"b":2}}},
      {"id":"3","name":"h","arguments":"not json"}]},
      {"role":"tool","tool_call_id":"2","content":"x"}])");
  const auto& calls = messages[0]["tool_calls"];
  EXPECT_EQ(calls[0]["type"], "function");
  EXPECT_EQ(calls[0]["function"]["arguments"]["a"], 1);
  EXPECT_EQ(calls[1]["function"]["arguments"]["b"], 2);
  EXPECT_EQ(calls[2]["function"]["name"], "h");
  EXPECT_EQ(calls[2]["function"]["arguments"], "not json");
  EXPECT_EQ(messages[1]["name"], "g") << "results have the name of their call's tool";
}

TEST(Conversation, SaysWhichToolCallIsWrong) {
  const auto call = [](const std::string& one) {
    return problem(R"([{"role":"assistant","content":"","tool_calls":[)" + one + "]}]");
  };
  EXPECT_THAT(call("7"), HasSubstr("messages[0].tool_calls[0] must be an object"));
  EXPECT_THAT(call("{}"), HasSubstr("messages[0].tool_calls[0] has no function"));
  EXPECT_THAT(call(R"({"function":{}})"), HasSubstr("tool_calls[0].function.name"));
  EXPECT_THAT(call(R"({"function":{"name":"f","arguments":5}})"), HasSubstr("function.arguments"));
}

TEST(Conversation, ThoughtsHaveTheNameThatTheTemplateKnows) {
  constexpr std::string_view kThought =
      R"([{"role":"assistant","content":"x","reasoning_content":"hm"}])";
  EXPECT_EQ(messages_of(kThought, "m.thinking")[0]["thinking"], "hm");
  EXPECT_FALSE(messages_of(kThought)[0].contains("thinking"));
  EXPECT_EQ(messages_of(kThought)[0]["reasoning_content"], "hm");
}

TEST(Conversation, RefusesDeepNesting) {
  const auto deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(problem("[{\"role\":\"user\",\"content\":\"x\",\"more\":" + deep + "}]"),
              HasSubstr("nested deeper"));
}

TEST(Conversation, BoundsMessagesWithBothNumbers) {
  const auto messages = [](int count) {
    std::string json = "[";
    for (int i = 0; i < count; ++i) json += R"({"role":"user","content":["x"]},)";
    json.back() = ']';
    return json;
  };
  EXPECT_THAT(problem(messages(10001)),
              HasSubstr("The messages are 10001; at most 10000 are allowed"));
  EXPECT_THAT(problem(messages(10000)), HasSubstr("content[0] must be an object"));
  EXPECT_THAT(problem(std::string((16U << 20U) + 1, ' ')),
              HasSubstr("have 16777217 bytes; at most 16777216"));
  EXPECT_THAT(problem(kHello, "[" + std::string(20000, '1')),
              HasSubstr("The tools are not valid JSON"));
}

}  // namespace
}  // namespace berth::worker
