#include "worker/grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/grammar/accepts.h"

namespace berth::worker {
namespace {

using test::accepts;
using test::GbnfMatcher;
using test::grammar_of;

struct Sample {
  std::string_view text;
  bool taken;
};

void expect_samples(std::string_view schema, std::initializer_list<Sample> samples) {
  GbnfMatcher matcher(grammar_of(schema));
  for (const auto& [text, taken] : samples) {
    EXPECT_EQ(matcher.matches(text), taken) << schema << " on " << text;
  }
}

TEST(JsonSchema, AnyValue) {
  for (const auto* schema : {"true", "{}", R"({"title":"x","description":"y","default":1})"}) {
    expect_samples(schema, {{"null", true},
                            {"-1.5e+3", true},
                            {R"("a\n\u00e4\ud83d\ude00ö")", true},
                            {R"({"a": [1, {"b": []}], "c": {}})", true},
                            {"[1,2,]", false},
                            {"{\"a\"}", false},
                            {"01", false},
                            {R"("\ud83d")", false},
                            {"\"\n\"", false},
                            {"", false},
                            {"nul", false}});
  }
}

TEST(JsonSchema, AnyJsonGrammarTakesObjectsOnly) {
  const auto grammar = any_json_grammar();
  EXPECT_TRUE(check_gbnf(grammar));
  GbnfMatcher matcher(grammar);
  EXPECT_TRUE(matcher.matches("{}"));
  EXPECT_TRUE(matcher.matches("{\n  \"a\": [[[{\"b\": null}]]],\n  \"c\": true\n}"));
  EXPECT_FALSE(matcher.matches("[]"));
  EXPECT_FALSE(matcher.matches("{}{}"));
}

TEST(JsonSchema, WhiteSpaceIsBounded) {
  expect_samples(R"({"type":"array","items":{"type":"integer"}})", {{"[1,2]", true},
                                                                    {"[1, 2]", true},
                                                                    {"[\n    1,\n    2\n]", true},
                                                                    {"[1,  2]", false},
                                                                    {"[1 , 2]", false},
                                                                    {"[\n\n1]", false},
                                                                    {"[1]\n", false}});
}

TEST(JsonSchema, RequiredAndOptionalPropertiesInOrder) {
  expect_samples(
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},
          "c":{"type":"integer"},"d":{"type":"integer"}},"required":["b"],
          "additionalProperties":false})",
      {{R"({"b":1})", true},
       {R"({"a":1,"b":2})", true},
       {R"({"b":1,"d":2})", true},
       {R"({"a": 1, "b": 2, "c": 3, "d": 4})", true},
       {R"({"a":1})", false},
       {R"({"b":1,"a":2})", false},
       {R"({"b":1,"b":2})", false},
       {R"({"b":1,"e":2})", false},
       {R"({"b":1,})", false},
       {"{}", false}});
}

TEST(JsonSchema, OnlyOptionalProperties) {
  expect_samples(
      R"({"properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}}})",
      {{"{}", true},
       {R"({"a":1})", true},
       {R"({"b":1,"c":2})", true},
       {R"({"a":1,"c":2})", true},
       {R"({"c":1,"a":2})", false},
       {R"({,"c":1})", false},
       {R"({"x":1})", false}});
}

TEST(JsonSchema, AdditionalProperties) {
  const auto* schema = R"({"type":"object","properties":{"ab":{"type":"integer"},
      "abc":{"type":"integer"}},"additionalProperties":{"type":"boolean"}})";
  expect_samples(schema, {{"{}", true},
                          {R"({"ab":1})", true},
                          {R"({"ab":1,"x":true})", true},
                          {R"({"x":true,"y":false})", true},
                          {R"({"a":true,"":true,"abcd":false,"ac":true,"\n":true})", true},
                          {R"({"ab":true})", false},
                          {R"({"abc":true})", false},
                          {R"({"\u0061b":true})", false},
                          {R"({"x":1})", false}});
  expect_samples(R"({"type":"object","required":["k"]})",
                 {{R"({"k":[1]})", true}, {R"({"k":1,"other":{}})", true}, {"{}", false}});
  expect_samples(R"({"type":"object","properties":{"q\"/":{}},"additionalProperties":true})",
                 {{R"({"q\"/":1,"q":2})", true},
                  {R"({"q\"":1})", true},
                  {R"({"q\\":1,"q\n":2,"\\":3})", true},
                  {R"({"q\":1})", false},
                  {R"({"q\u0022/":1})", false},
                  {R"({"q":1,"q\"/":2})", false}});
  expect_samples(
      R"({"properties":{"\u0001":{}},"additionalProperties":{"type":"null"}})",
      {{R"({"\u0001":1})", true}, {R"({"\u00":null})", false}, {R"({"\n":null})", true}});
  expect_samples(R"({"type":"object","additionalProperties":false})",
                 {{"{}", true}, {R"({"a":1})", false}});
}

TEST(JsonSchema, FalsePropertyIsForbidden) {
  expect_samples(R"({"properties":{"a":false,"b":true},"additionalProperties":true})",
                 {{R"({"b":1})", true}, {R"({"a":1})", false}, {R"({"c":1})", true}});
}

TEST(JsonSchema, Arrays) {
  expect_samples(R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3})",
                 {{"[true]", false},
                  {"[true,false]", true},
                  {"[true,false,true]", true},
                  {"[true,false,true,true]", false}});
  expect_samples(R"({"items":{"type":"null"},"maxItems":1})",
                 {{"[]", true}, {"[null]", true}, {"[null,null]", false}});
  expect_samples(R"({"type":"array","maxItems":0})", {{"[]", true}, {"[1]", false}});
}

TEST(JsonSchema, Tuples) {
  expect_samples(R"({"prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":false})",
                 {{"[]", true}, {"[1]", true}, {"[1,true]", true}, {"[1,true,1]", false}});
  expect_samples(R"({"prefixItems":[{"type":"integer"},{"type":"boolean"}],
                     "items":{"type":"null"},"minItems":2,"maxItems":4})",
                 {{"[1]", false},
                  {"[1,true]", true},
                  {"[1,true,null,null]", true},
                  {"[1,true,null,null,null]", false}});
  expect_samples(R"({"prefixItems":[{"type":"integer"}],"minItems":3})",
                 {{"[1]", false}, {"[1,2]", false}, {R"([1,2,"x"])", true}, {"[1,2,3,4]", true}});
}

TEST(JsonSchema, Strings) {
  expect_samples(R"({"type":"string","minLength":1,"maxLength":3})",
                 {{R"("")", false},
                  {R"("a")", true},
                  {R"("äöü")", true},
                  {R"("\u00e4\n\ud83d\ude00")", true},
                  {R"("abcd")", false}});
  expect_samples(R"({"type":"string","maxLength":0})", {{R"("")", true}, {R"("a")", false}});
}

TEST(JsonSchema, LongStringsAreCountedExactly) {
  const auto text = [](std::size_t length) { return '"' + std::string(length, 'x') + '"'; };
  for (const std::size_t limit : {127U, 128U, 129U, 1'000U, 2'000U, 2'001U}) {
    const auto most = R"({"type":"string","maxLength":)" + std::to_string(limit) + "}";
    EXPECT_TRUE(accepts(most, text(limit))) << limit;
    EXPECT_TRUE(accepts(most, text(limit / 2))) << limit;
    EXPECT_FALSE(accepts(most, text(limit + 1))) << limit;
    const auto least = R"({"type":"string","minLength":)" + std::to_string(limit) + "}";
    EXPECT_TRUE(accepts(least, text(limit))) << limit;
    EXPECT_TRUE(accepts(least, text(limit + 5))) << limit;
    EXPECT_FALSE(accepts(least, text(limit - 1))) << limit;
  }
}

TEST(JsonSchema, HugeCountsStaySmall) {
  for (const auto* schema : {R"({"type":"string","maxLength":1000000000})",
                             R"({"type":"array","items":{"type":"string"},"maxItems":1000000000})",
                             R"({"type":"string","minLength":1000000,"maxLength":1000000})",
                             R"({"type":"array","minItems":999999,"maxItems":1e300})"}) {
    EXPECT_LT(grammar_of(schema).size(), 4'000U) << schema;
  }
}

TEST(JsonSchema, Formats) {
  expect_samples(R"({"type":"string","format":"date"})", {{R"("2024-02-29")", true},
                                                          {R"("2024-02-30")", false},
                                                          {R"("2024-04-31")", false},
                                                          {R"("2024-13-01")", false}});
  expect_samples(R"({"format":"date-time"})", {{R"("2024-12-31T23:59:59Z")", true},
                                               {R"("2024-12-31T23:59:59.123+02:00")", true},
                                               {R"("2024-12-31 23:59:59Z")", false},
                                               {R"("2024-12-31T24:00:00Z")", false}});
  expect_samples(R"({"format":"time"})", {{R"("00:00:00-11:30")", true}, {R"("00:00")", false}});
  expect_samples(R"({"format":"uuid"})", {{R"("123e4567-e89b-12d3-a456-426614174000")", true},
                                          {R"("123e4567e89b12d3a456426614174000")", false}});
}

TEST(JsonSchema, EnumsAndConstants) {
  expect_samples(R"({"enum":["a\"b",1,1.5,null,true,{"k":[1,"x"]},"\u0000é"]})",
                 {{R"("a\"b")", true},
                  {"1", true},
                  {"1.5", true},
                  {"null", true},
                  {R"({"k":[1,"x"]})", true},
                  {R"("\u0000é")", true},
                  {"2", false}});
  expect_samples(R"({"type":"string","enum":["a",1]})", {{R"("a")", true}, {"1", false}});
  expect_samples(R"({"const":{"a":1e100}})", {{R"({"a":1e+100})", true}});
}

TEST(JsonSchema, TenThousandValuesAreGrouped) {
  std::string schema = R"({"enum":[)";
  for (int i = 0; i < 10'000; ++i) {
    schema += (i == 0 ? "\"value-" : ",\"value-") + std::to_string(i * 7919) + '"';
  }
  schema += "]}";
  GbnfMatcher matcher(grammar_of(schema));
  EXPECT_TRUE(matcher.matches("\"value-0\""));
  EXPECT_TRUE(matcher.matches("\"value-" + std::to_string(9'999 * 7919) + "\""));
  EXPECT_FALSE(matcher.matches("\"value-1\""));
  EXPECT_FALSE(matcher.matches("\"value-\""));
}

TEST(JsonSchema, Alternatives) {
  for (const auto* word : {"anyOf", "oneOf"}) {
    expect_samples(std::string("{\"") + word + R"(":[{"type":"integer"},{"const":"x"},false]})",
                   {{"1", true}, {"\"x\"", true}, {"\"y\"", false}});
  }
  expect_samples(R"({"type":["string","null"],"maxLength":1})",
                 {{"null", true}, {R"("a")", true}, {R"("ab")", false}});
  expect_samples(R"({"type":"string","nullable":true})", {{"null", true}, {R"("a")", true}});
  expect_samples(R"({"enum":["a"],"nullable":true})", {{"null", true}, {R"("a")", true}});
  expect_samples(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
                     "additionalProperties":false,
                     "anyOf":[{"required":["a"]},{"required":["b"]}]})",
                 {{R"({"a":1})", true}, {R"({"b":1})", true}, {"{}", false}});
}

TEST(JsonSchema, AllOfJoins) {
  expect_samples(
      R"({"allOf":[{"$ref":"#/$defs/base"},{"properties":{"b":{"type":"integer"}},
          "required":["b"]}],"$defs":{"base":{"type":"object","properties":{"a":{"type":"string"}},
          "required":["a"]}}})",
      {{R"({"a":"x","b":1})", true}, {R"({"a":"x"})", false}, {R"({"b":1})", false}});
  expect_samples(R"({"allOf":[{"minimum":1},{"type":"integer","minimum":3},{"maximum":5}]})",
                 {{"2", false}, {"3", true}, {"5", true}, {"6", false}});
  expect_samples(R"({"allOf":[{"type":"number"},{"type":["integer","string"]}]})",
                 {{"1", true}, {"1.5", false}, {"\"a\"", false}});
  expect_samples(R"({"allOf":[{"properties":{"a":{"type":"integer"}}},
                     {"properties":{"a":{"minimum":10}},"required":["a"]}]})",
                 {{R"({"a":10})", true}, {R"({"a":9})", false}});
}

TEST(JsonSchema, ReferencesAndRecursion) {
  expect_samples(R"({"$ref":"#/definitions/a~1b%25","definitions":{"a/b%":{"type":"null"}}})",
                 {{"null", true}, {"1", false}});
  expect_samples(
      R"({"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#"},
          {"type":"null"}]}},"required":["v","next"]})",
      {{R"({"v":1,"next":null})", true},
       {R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})", true},
       {R"({"v":1,"next":{"v":2}})", false}});
  // Recursion through a reference with keywords beside it.
  expect_samples(
      R"({"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n","required":["c"]}}}},
          "$ref":"#/$defs/n"})",
      {{"{}", true}, {R"({"c":{}})", false}});
}

TEST(JsonSchema, EscapesOfNames) {
  expect_samples(R"({"properties":{"a\"\\\n]-ö":{"type":"null"}},"required":["a\"\\\n]-ö"]})",
                 {{R"({"a\"\\\n]-ö":null})", true}});
}

TEST(JsonSchema, Wrappers) {
  GrammarForm form;
  form.before = "<tool_call>\n";
  form.after = "\n</tool_call>";
  form.separator = "\n";
  form.repeated = true;
  const auto calls = json_schema_to_gbnf(R"({"type":"integer"})", form);
  ASSERT_TRUE(calls);
  EXPECT_TRUE(check_gbnf(*calls));
  GbnfMatcher matcher(*calls);
  EXPECT_TRUE(matcher.matches("<tool_call>\n1\n</tool_call>"));
  EXPECT_TRUE(matcher.matches("<tool_call>\n1\n</tool_call>\n<tool_call>\n2\n</tool_call>"));
  EXPECT_FALSE(matcher.matches("1"));
  EXPECT_FALSE(matcher.matches("<tool_call>\n1\n</tool_call>\n"));

  form = GrammarForm{"[", "", "", ", ", "]", true};
  const auto list = json_schema_to_gbnf(R"({"type":"integer"})", form);
  ASSERT_TRUE(list);
  EXPECT_TRUE(GbnfMatcher(*list).matches("[1, 2]"));
  EXPECT_FALSE(GbnfMatcher(*list).matches("[]"));

  form = GrammarForm{"", "<|python_tag|>", "", "", "", false};
  const auto one = json_schema_to_gbnf("true", form);
  ASSERT_TRUE(one);
  EXPECT_TRUE(GbnfMatcher(*one).matches("<|python_tag|>{}"));

  form.before = "\xFF";
  EXPECT_FALSE(json_schema_to_gbnf("true", form));
  form.before = std::string(GrammarForm::kWrapperBytes + 1, 'x');
  EXPECT_FALSE(json_schema_to_gbnf("true", form));
}

// Shapes that pydantic and zod write.
TEST(JsonSchema, ShapesOfCommonGenerators) {
  EXPECT_TRUE(accepts(
      R"({"$defs":{"Color":{"enum":["red","green"],"title":"Color","type":"string"},
          "Item":{"properties":{"name":{"title":"Name","type":"string"},
          "color":{"allOf":[{"$ref":"#/$defs/Color"}],"default":"red"},
          "size":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null,"title":"Size"}},
          "required":["name"],"title":"Item","type":"object"}},
          "properties":{"items":{"items":{"$ref":"#/$defs/Item"},"title":"Items","type":"array"}},
          "required":["items"],"title":"Order","type":"object"})",
      R"({"items":[{"name":"x","color":"green","size":null},{"name":"y"}]})"));
  EXPECT_TRUE(accepts(
      R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object",
          "properties":{"steps":{"type":"array","items":{"type":"object","properties":{
          "explanation":{"type":"string"},"output":{"type":"string"}},
          "required":["explanation","output"],"additionalProperties":false}},
          "final_answer":{"type":"string"}},"required":["steps","final_answer"],
          "additionalProperties":false})",
      R"({"steps": [{"explanation": "a", "output": "b"}], "final_answer": "c"})"));
}

}  // namespace
}  // namespace berth::worker
