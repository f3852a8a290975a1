#include <gtest/gtest.h>

#include "tests/unit/gateway/openai/read.h"

namespace berth::gateway::openai {
namespace {

Error renamed(const char* param, const char* message) {
  return with_openai_names(invalid_argument(param, message).value());
}

TEST(FieldNames, TheWorkersNamesBecomeOpenAis) {
  const Error range = renamed("sampling.top_p", "sampling.top_p is 5, but must be at most 1.");
  EXPECT_EQ(param_of(range), "top_p");
  EXPECT_EQ(range.message, "top_p is 5, but must be at most 1.");
  const Error tools =
      renamed("format",
              "format and tools cannot shape the same answer. Leave format or chat.tools_json out");
  EXPECT_EQ(param_of(tools), "response_format");
  EXPECT_NE(tools.message.find("or tools out"), std::string::npos);
  EXPECT_EQ(param_of(renamed("format.json_schema", "x")), "response_format.json_schema.schema");
  EXPECT_EQ(param_of(renamed("chat.tool_choice_json", "x")), "tool_choice");
  EXPECT_EQ(param_of(renamed("tokens.ids[3]", "x")), "prompt[3]");
  EXPECT_EQ(param_of(renamed("inputs", "x")), "input");
  const Error token = renamed("inputs[3].tokens.ids[5]", "inputs[3].tokens.ids[5] is -1");
  EXPECT_EQ(param_of(token), "input[3][5]");
  EXPECT_EQ(token.message, "input[3][5] is -1");
  EXPECT_EQ(param_of(renamed("stop[2]", "x")), "stop[2]");
}

TEST(FieldNames, APlaceInTheMessagesIsTheField) {
  EXPECT_EQ(param_of(renamed("chat.messages_json", "messages[1].role is \"x\"; this model knows")),
            "messages[1].role");
  EXPECT_EQ(param_of(renamed("chat.messages_json",
                             "messages[0].content[1]: images are not supported by this model.")),
            "messages[0].content[1]");
  EXPECT_EQ(param_of(renamed("chat.messages_json", "The array of messages is empty.")), "messages");
}

TEST(FieldNames, OtherErrorsStayAsTheyAre) {
  const Error error(Reason::kLoadFailed, "sampling.x");
  EXPECT_EQ(with_openai_names(error).message, "sampling.x");
}

}  // namespace
}  // namespace berth::gateway::openai
