#include "worker/template/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace berth::worker {
namespace {

using testing::HasSubstr;

constexpr const char* kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% endif %}";

ChatTemplate chat_ml() {
  auto parsed = ChatTemplate::parse(kChatMl, "<s>", "<|im_end|>");
  EXPECT_TRUE(parsed.has_value());
  return std::move(*parsed);
}

std::string problem(std::string_view messages, std::string_view tools = "") {
  const auto text = chat_ml().render(messages, tools, true);
  EXPECT_FALSE(text.has_value());
  if (text) return "";
  EXPECT_EQ(text.error().reason, Reason::kInvalidArgument);
  return text.error().message;
}

TEST(ChatTemplate, RendersMessages) {
  const auto text = chat_ml().render(
      R"([{"role":"system","content":"Be kind."},{"role":"user","content":"Hé"}])", "", true);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(*text,
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHé<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplate, LeavesTheGenerationPromptOut) {
  const auto text = chat_ml().render(R"([{"role":"user","content":"x"}])", "", false);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text, "<|im_start|>user\nx<|im_end|>\n");
}

TEST(ChatTemplate, JoinsTextParts) {
  const auto text = chat_ml().render(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])", "",
      false);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(*text, "<|im_start|>user\nab<|im_end|>\n");
}

TEST(ChatTemplate, SaysWhichMessageIsWrong) {
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
  EXPECT_THAT(problem(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
              HasSubstr("messages[0].content[0] is not a text part"));
  EXPECT_THAT(problem(R"([{"role":"user","content":"x","tool_calls":3}])"),
              HasSubstr("messages[0].tool_calls"));
  EXPECT_THAT(problem(R"([{"role":"user","content":"x"}])", "{}"), HasSubstr("The tools"));
}

TEST(ChatTemplate, RefusesDeepNesting) {
  const auto deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(problem("[{\"role\":\"user\",\"content\":\"x\",\"more\":" + deep + "}]"),
              HasSubstr("nested deeper"));
}

TEST(ChatTemplate, BoundsMessagesWithBothNumbers) {
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
  EXPECT_THAT(problem(R"([{"role":"user","content":"x"}])", "[" + std::string(20000, '1')),
              HasSubstr("The tools are not valid JSON"));
}

TEST(ChatTemplate, SaysWhatTheTemplateSays) {
  auto parsed = ChatTemplate::parse(
      "{% if messages|length > 1 %}{{ raise_exception('only one message, please') }}{% endif %}"
      "{{ messages[0].content }}",
      "", "");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto text =
      parsed->render(R"([{"role":"user","content":"x"},{"role":"user","content":"y"}])", "", true);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().reason, Reason::kTemplateFailed);
  EXPECT_THAT(text.error().message, HasSubstr("only one message, please"));
}

TEST(ChatTemplate, RefusesATemplateThatCannotBeParsed) {
  for (const char* const source : {"{% for x in %}", "{{ unclosed", "{% endif %}"}) {
    const auto parsed = ChatTemplate::parse(source, "", "");
    ASSERT_FALSE(parsed.has_value()) << source;
    EXPECT_EQ(parsed.error().reason, Reason::kTemplateFailed);
  }
  EXPECT_FALSE(ChatTemplate::parse(std::string(2U << 20U, 'x'), "", "").has_value());
}

}  // namespace
}  // namespace berth::worker
