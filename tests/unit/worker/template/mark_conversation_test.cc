#include "worker/template/mark_conversation.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::worker {
namespace {

Conversation saying(const std::string& text) {
  Conversation conversation;
  conversation.messages = Json::array({Json{{"role", "user"}, {"content", text}}});
  return conversation;
}

std::string repeated(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "<s>";
  return text;
}

TEST(MarkConversation, TakesAsManyAsItSays) {
  auto conversation = saying(repeated(kMaxControlTexts));
  const auto marks = mark_control_texts(conversation, ControlTexts({"<s>"}));
  ASSERT_TRUE(marks.has_value()) << marks.error().message;
  EXPECT_EQ(conversation.messages[0]["content"].get<std::string>().size(),
            kMaxControlTexts * (3 + marks->begin.size() + marks->end.size()));
}

// A text of nothing but control texts would become 14 times as large.
TEST(MarkConversation, L26_StopsAtTheBound) {
  const auto text = repeated(std::size_t{1} << 20U);
  auto conversation = saying(text);
  conversation.tools = Json::array({Json{{text, text}}});
  const auto marks = mark_control_texts(conversation, ControlTexts({"<s>"}));
  ASSERT_FALSE(marks.has_value());
  EXPECT_EQ(marks.error().reason, Reason::kInvalidArgument);
  EXPECT_LE(conversation.messages[0]["content"].get<std::string>().size(),
            text.size() + (kMaxControlTexts + 1) * 40);
}

}  // namespace
}  // namespace berth::worker
