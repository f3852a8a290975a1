#include "supervisor/gateway/openai/json_body.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::gateway::openai {
namespace {

std::string message_of(std::string_view body) {
  const auto parsed = parse_body(body);
  return parsed ? "taken" : parsed.error().message;
}

TEST(JsonBody, AnObjectIsRead) {
  const auto body = parse_body(R"( {"a": 1, "b": {"c": [true, null]}} )");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->at("a"), 1);
  EXPECT_EQ(body->size(), 2U);
}

TEST(JsonBody, OfANameThatIsThereTwiceTheLastValueCounts) {
  const auto body = parse_body(R"({"a": 1, "a": 2})");
  ASSERT_TRUE(body);
  EXPECT_EQ(body->at("a"), 2);
}

TEST(JsonBody, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(message_of(""), "The body is empty, but must be a JSON object.");
  EXPECT_NE(message_of("{\"a\":1,\n\"b\":tru}").find("byte 12 (line 2)"), std::string::npos)
      << message_of("{\"a\":1,\n\"b\":tru}");
  EXPECT_NE(message_of(R"({"a":1)").find("ends too early, at byte 6"), std::string::npos);
  EXPECT_NE(message_of(R"({"a":1} {})").find("byte 8"), std::string::npos);
  EXPECT_NE(message_of(R"({"a":NaN})").find("byte 5"), std::string::npos);
  EXPECT_EQ(message_of("[1]"), "The body must be a JSON object, not a list.");
  EXPECT_EQ(message_of("3"), "The body must be a JSON object, not 3.");
}

TEST(JsonBody, InvalidUtf8AndLoneSurrogatesAreRefusedWithTheirByte) {
  EXPECT_EQ(message_of("{\"a\":\"caf\xE9\"}"),
            "The body is not valid UTF-8 at byte 9 (line 1). Send JSON as UTF-8.");
  EXPECT_NE(message_of(R"({"a":"\ud800"})").find("not valid JSON at byte 12"), std::string::npos);
  EXPECT_NE(message_of(R"({"a":"\udc00"})").find("not valid JSON at byte 12"), std::string::npos);
  EXPECT_EQ(message_of(R"({"a":"\ud83d\ude00"})"), "taken");
}

TEST(JsonBody, NumbersThatNoDoubleHoldsAreRefusedByName) {
  const auto body = parse_body(R"({"a":{"b":[1,1e999]}})");
  ASSERT_FALSE(body);
  ASSERT_TRUE(body.error().extras);
  EXPECT_EQ(body.error().extras->param, "a.b[1]");
}

TEST(JsonBody, NestingIsBounded) {
  const auto nested = [](std::size_t depth) {
    return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(message_of(nested(kMaxDepth - 1)), "taken");
  EXPECT_NE(message_of(nested(kMaxDepth + 1)).find("nested more than 144 deep"), std::string::npos);
  EXPECT_NE(message_of(nested(1'000'000)).find("nested more than"), std::string::npos);
}

TEST(JsonBody, TheNumberOfValuesIsBounded) {
  std::string list(2 * kMaxValues + 2, ',');
  for (std::size_t i = 0; i < list.size(); i += 2) list[i] = '0';
  list.pop_back();
  const auto many = parse_body("{\"a\":[" + list + "]}");
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().reason, Reason::kBodyTooLarge);
  EXPECT_TRUE(parse_body("{\"a\":\"" + list + "\\\"" + list + "\"}")) << "commas of a text";
}

TEST(JsonBody, ValuesAreDescribedShortly) {
  EXPECT_EQ(describe(boost::json::value("a\nb")), "\"a b\"");
  EXPECT_EQ(describe(boost::json::value(std::string(100, 'x'))),
            "\"" + std::string(50, 'x') + "…\"");
  EXPECT_EQ(describe(boost::json::value(true)), "true");
  EXPECT_EQ(describe(boost::json::value()), "null");
  EXPECT_EQ(describe(boost::json::object()), "an object");
}

}  // namespace
}  // namespace berth::gateway::openai
