#include "worker/grammar/tool_call_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/unit/worker/grammar/accepts.h"

namespace berth::worker {
namespace {

using test::accepts;
using testing::HasSubstr;

constexpr const char* kTools = R"([
  {"type":"function","function":{"name":"get_weather","description":"d","strict":true,
   "parameters":{"type":"object","properties":{"city":{"type":"string"},
   "unit":{"$ref":"#/$defs/unit"},"enum":{"enum":[{"$ref":"#/kept"}]}},"required":["city"],
   "$defs":{"unit":{"enum":["C","F"]}},"additionalProperties":false}}},
  {"type":"function","function":{"name":"now"}},
  {"type":"function","function":{"name":"tree","parameters":{"type":"object",
   "properties":{"child":{"$ref":"#"}}}}}])";

std::string refusal(std::string_view tools, const std::optional<std::string>& only = std::nullopt) {
  const auto schema = tool_call_schema(tools, only);
  if (schema) return "taken";
  EXPECT_EQ(schema.error().reason, Reason::kInvalidArgument);
  return schema.error().message;
}

TEST(ToolCallSchema, AnyOfTheTools) {
  const auto schema = tool_call_schema(kTools);
  ASSERT_TRUE(schema);
  EXPECT_TRUE(accepts(*schema, R"({"name": "get_weather", "arguments": {"city": "Bern"}})"));
  EXPECT_TRUE(accepts(*schema, R"({"name":"get_weather","arguments":{"city":"Bern","unit":"C"}})"));
  EXPECT_TRUE(accepts(*schema, R"({"name":"get_weather","arguments":{"city":"Bern",)"
                               R"("enum":{"$ref":"#/kept"}}})"));
  EXPECT_TRUE(accepts(*schema, R"({"name":"now","arguments":{}})"));
  EXPECT_TRUE(accepts(*schema, R"({"name":"tree","arguments":{"child":{"child":{}}}})"));
  EXPECT_FALSE(accepts(*schema, R"({"name":"tree","arguments":{"child":{"name":"tree"}}})"));
  EXPECT_FALSE(accepts(*schema, R"({"name":"now","arguments":{"city":"Bern"}})"));
  EXPECT_FALSE(accepts(*schema, R"({"name":"get_weather","arguments":{"unit":"C"}})"));
  EXPECT_FALSE(accepts(*schema, R"({"name":"other","arguments":{}})"));
  EXPECT_FALSE(accepts(*schema, R"({"arguments":{}})"));
}

TEST(ToolCallSchema, OneNamedTool) {
  const auto schema = tool_call_schema(kTools, "now");
  ASSERT_TRUE(schema);
  EXPECT_TRUE(accepts(*schema, R"({"name":"now","arguments":{}})"));
  EXPECT_FALSE(accepts(*schema, R"({"name":"get_weather","arguments":{"city":"Bern"}})"));
  EXPECT_THAT(refusal(kTools, "later"), HasSubstr("`later`"));
}

TEST(ToolCallSchema, KeysOfOtherTemplates) {
  const auto schema = tool_call_schema(kTools, "now", ToolCallKeys{"name", "parameters"});
  ASSERT_TRUE(schema);
  EXPECT_TRUE(accepts(*schema, R"({"name":"now","parameters":{}})"));
}

// Parameters that allow more than objects.
constexpr std::array kLooseParameters = {
    "{}",
    R"({"description":"anything"})",
    R"({"type":["object","null"],"properties":{"a":{"type":"integer"}}})",
    R"({"type":"object","nullable":true,"properties":{"a":{"type":"integer"}}})",
    R"({"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{"type":"null"}]})",
    R"({"$ref":"#/$defs/p","$defs":{"p":{"type":["array","object","integer"],"properties":
       {"a":{"type":"integer"}}}}})",
    R"({"enum":[{"a":1},5,null]})",
};

TEST(ToolCallSchema, ArgumentsAreAnObjectWhateverParametersAllow) {
  for (const std::string parameters : kLooseParameters) {
    const auto tools = "[{\"function\":{\"name\":\"f\",\"parameters\":" + parameters + "}}]";
    const auto schema = tool_call_schema(tools);
    ASSERT_TRUE(schema);
    const auto read = read_tools(tools);
    ASSERT_TRUE(read);
    const auto alone = arguments_schema(read->front());
    for (const std::string other : {"5", "null", "[]", "\"a\"", "true"}) {
      EXPECT_FALSE(accepts(*schema, R"({"name":"f","arguments":)" + other + "}")) << parameters;
      EXPECT_FALSE(accepts(alone, other)) << parameters;
    }
    EXPECT_TRUE(accepts(*schema, R"({"name":"f","arguments":{"a":1}})")) << parameters;
    EXPECT_TRUE(accepts(alone, R"({"a":1})")) << parameters;
  }
}

// What leads back to the parameters still means them as they are.
TEST(ToolCallSchema, ParametersWithinThemselvesStayAsTheyAre) {
  const auto tools = read_tools(R"([{"function":{"name":"f","parameters":
      {"type":["object","null"],"properties":{"next":{"$ref":"#"}},"required":["next"]}}}])");
  ASSERT_TRUE(tools);
  const auto alone = arguments_schema(tools->front());
  EXPECT_TRUE(accepts(alone, R"({"next":{"next":null}})"));
  EXPECT_FALSE(accepts(alone, "null"));
}

TEST(ToolCallSchema, RefusesMalformedTools) {
  EXPECT_THAT(refusal("{}"), HasSubstr("array of tools"));
  EXPECT_THAT(refusal("[]"), HasSubstr("at least one tool"));
  EXPECT_THAT(refusal("["), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("tools[0]"));
  EXPECT_THAT(refusal(R"([{"type":"web_search"}])"), HasSubstr("`function`"));
  EXPECT_THAT(refusal(R"([{"type":"function"}])"), HasSubstr("`function`"));
  EXPECT_THAT(refusal(R"([{"type":"function","function":{"name":""}}])"), HasSubstr("name"));
  EXPECT_THAT(refusal(R"([{"type":"function","function":{"name":"a","parameters":1}}])"),
              HasSubstr("JSON schema"));
  EXPECT_THAT(refusal(R"([{"type":"function","function":{"name":"a","strict":1}}])"),
              HasSubstr("strict"));
  EXPECT_THAT(refusal(R"([{"type":"function","function":{"name":"a"}},
                          {"type":"function","function":{"name":"a"}}])"),
              HasSubstr("tools[1]"));
  std::string many = "[";
  for (int i = 0; i < 257; ++i) {
    many += (i == 0 ? "" : ",") + std::string(R"({"type":"function","function":{"name":"f)") +
            std::to_string(i) + "\"}}";
  }
  EXPECT_THAT(refusal(many + "]"), HasSubstr("257 tools"));
}

TEST(ToolCallSchema, WrongParametersAreNamedByTheConverter) {
  const auto schema = tool_call_schema(
      R"([{"type":"function","function":{"name":"a","parameters":{"properties":{"x":{"not":{}}}}}}])");
  ASSERT_TRUE(schema);
  EXPECT_THAT(test::refusal(*schema), HasSubstr("#/$defs/tool-0/properties/x: `not`"));
  const auto second = tool_call_schema(
      R"([{"function":{"name":"b"}},{"function":{"name":"a","parameters":{"not":{}}}}])", "a");
  ASSERT_TRUE(second);
  EXPECT_THAT(test::refusal(*second), HasSubstr("#/$defs/tool-1: `not`"));
}

}  // namespace
}  // namespace berth::worker
