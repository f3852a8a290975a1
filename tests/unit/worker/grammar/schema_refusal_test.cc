#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "common/text.h"
#include "tests/unit/worker/grammar/accepts.h"
#include "worker/grammar/schema_document.h"

namespace berth::worker {
namespace {

using test::refusal;
using testing::AllOf;
using testing::HasSubstr;

TEST(SchemaRefusal, NamesKeywordAndPlace) {
  EXPECT_EQ(refusal(R"({"properties":{"a":{"patternProperties":{}}}})"),
            "The schema's #/properties/a: `patternProperties` is not supported; list the names in "
            "`properties`, or use `additionalProperties`.");
  for (const auto* keyword : {"not", "if", "then", "else", "dependentRequired", "dependentSchemas",
                              "dependencies", "propertyNames", "minProperties", "maxProperties",
                              "multipleOf", "contains", "unevaluatedProperties", "$dynamicRef",
                              "$anchor", "additionalItems", "contentEncoding", "strict"}) {
    EXPECT_THAT(refusal("{\"anyOf\":[{\"items\":{\"" + std::string(keyword) + "\":1}}]}"),
                AllOf(HasSubstr("#/anyOf/0/items: "), HasSubstr("`" + std::string(keyword) + "`")));
  }
  EXPECT_THAT(refusal(R"({"uniqueItems":true})"), HasSubstr("`uniqueItems`"));
  EXPECT_EQ(refusal(R"({"uniqueItems":false,"x-order":1,"examples":[1]})"), "taken");
  EXPECT_THAT(refusal(R"({"properties":{"a/b~":{"not":{}}}})"), HasSubstr("#/properties/a~1b~0:"));
  EXPECT_THAT(refusal(R"({"$ref":"#/$defs/x","$defs":{"x":{"not":{}},"unused":{"not":{}}}})"),
              HasSubstr("#/$defs/x: "));
}

TEST(SchemaRefusal, FindsWrongKindsOfValues) {
  for (const auto* schema : {R"([])",
                             R"("x")",
                             R"(1)",
                             R"({"type":"text"})",
                             R"({"type":[]})",
                             R"({"type":1})",
                             R"({"properties":[]})",
                             R"({"properties":{"a":1}})",
                             R"({"required":"a"})",
                             R"({"required":[1]})",
                             R"({"items":[{}]})",
                             R"({"anyOf":{}})",
                             R"({"anyOf":[]})",
                             R"({"enum":[]})",
                             R"({"enum":1})",
                             R"({"minLength":-1})",
                             R"({"maxLength":1.5})",
                             R"({"maxItems":"3"})",
                             R"({"minimum":"3"})",
                             R"({"exclusiveMinimum":true})",
                             R"({"pattern":1})",
                             R"({"nullable":1})",
                             R"({"additionalProperties":1})",
                             R"({"$ref":1})",
                             R"({"format":null})"}) {
    EXPECT_THAT(refusal(schema), HasSubstr("The schema's #")) << schema;
  }
}

// Every one would be a look at all properties.
TEST(SchemaRefusal, TypesAreListedOnce) {
  EXPECT_EQ(refusal(R"({"type":["object","array","string","number","integer","boolean","null"]})"),
            "taken");
  EXPECT_EQ(refusal(R"({"items":{"type":["string","null","string"]}})"),
            "The schema's #/items: `type` lists `string` more than once; drop the others.");
  std::string many = R"({"properties":{")" + std::string(SchemaBounds::kBytes / 2, 'p') +
                     R"(":{}},"type":["object")";
  for (int i = 1; i < 10'000; ++i) many += R"(,"object")";
  EXPECT_THAT(refusal(many + "]}"), HasSubstr("`type` lists `object` more than once"));
}

TEST(SchemaRefusal, ReferencesMustLeadSomewhere) {
  EXPECT_THAT(refusal(R"({"$ref":"#/$defs/a"})"), HasSubstr("leads nowhere"));
  EXPECT_THAT(refusal(R"({"$ref":"https://example.org/a.json"})"), HasSubstr("leads out of"));
  EXPECT_THAT(refusal(R"({"$ref":"#anchor"})"), HasSubstr("leads nowhere"));
  EXPECT_THAT(refusal(R"({"properties":{"a":{}},"items":{"$ref":"#/properties"}})"),
              HasSubstr("#/properties: `a` is not supported"));
}

TEST(SchemaRefusal, LoopsWithoutProgress) {
  EXPECT_THAT(refusal(R"({"$ref":"#"})"), HasSubstr("back to itself"));
  EXPECT_THAT(refusal(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},
                          "b":{"allOf":[{"$ref":"#/$defs/a"}]}}})"),
              HasSubstr("back to itself"));
  EXPECT_THAT(refusal(R"({"anyOf":[{"$ref":"#"},{"type":"string"}]})"),
              HasSubstr("back to itself"));
  EXPECT_THAT(refusal(R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},
                          {"$ref":"#/$defs/b"}]},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}}})"),
              HasSubstr("back to itself"));
}

TEST(SchemaRefusal, WhatNothingSatisfies) {
  EXPECT_THAT(refusal("false"), HasSubstr("no value"));
  EXPECT_THAT(refusal(R"({"anyOf":[false]})"), HasSubstr("no value"));
  EXPECT_THAT(refusal(R"({"type":"string","anyOf":[{"type":"null"}]})"), HasSubstr("no value"));
  EXPECT_EQ(refusal(R"({"type":"string","anyOf":[{"type":"null"},{"maxLength":3}]})"), "taken");
  EXPECT_THAT(refusal(R"({"type":"integer","minimum":3,"maximum":2})"), HasSubstr("no integer"));
  EXPECT_THAT(refusal(R"({"type":"integer","minimum":1e30})"), HasSubstr("no integer"));
  EXPECT_THAT(refusal(R"({"type":"number","minimum":3,"maximum":2})"), HasSubstr("no number"));
  EXPECT_THAT(refusal(R"({"minLength":3,"maxLength":2})"), HasSubstr("`maxLength`"));
  EXPECT_THAT(refusal(R"({"minItems":3,"maxItems":2})"), HasSubstr("at most 2 items"));
  EXPECT_THAT(refusal(R"({"type":"string","enum":[1]})"), HasSubstr("`enum`"));
  EXPECT_THAT(refusal(R"({"const":1,"enum":[2]})"), HasSubstr("`const`"));
  EXPECT_THAT(refusal(R"({"allOf":[{"type":"string"},{"type":"null"}]})"), HasSubstr("in common"));
  EXPECT_THAT(refusal(R"({"properties":{"a":false},"required":["a"]})"), HasSubstr("nothing fits"));
  EXPECT_THAT(refusal(R"({"properties":{},"required":["a"],"additionalProperties":false})"),
              HasSubstr("not in `properties`"));
}

TEST(SchemaRefusal, PartsThatCannotBeJoined) {
  EXPECT_THAT(refusal(R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},
                          {"properties":{"b":{}}}]})"),
              HasSubstr("forbids the property `b`"));
  EXPECT_THAT(refusal(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})"), HasSubstr("`pattern`"));
  EXPECT_THAT(refusal(R"({"anyOf":[{}],"oneOf":[{}]})"), HasSubstr("`oneOf`"));
  EXPECT_THAT(refusal(R"({"pattern":"a","maxLength":3})"), HasSubstr("beside one another"));
  EXPECT_THAT(refusal(R"({"enum":["a"],"maxLength":3})"), HasSubstr("`maxLength` beside `enum`"));
  EXPECT_THAT(refusal(R"({"minimum":3,"maxLength":3})"), HasSubstr("without `type`"));
  EXPECT_THAT(refusal(R"({"format":"email"})"), HasSubstr("`email`"));
  EXPECT_THAT(refusal(R"({"type":"number","minimum":0.5})"), HasSubstr("whole number"));
}

TEST(SchemaRefusal, BoundsOfTheText) {
  EXPECT_THAT(refusal("{\"title\":\"" + std::string(SchemaBounds::kBytes, 'x') + "\"}"),
              HasSubstr("at most 262144"));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += R"({"items":)";
  EXPECT_THAT(refusal(deep + "{}" + std::string(200, '}')), HasSubstr("deeper than 128"));
  EXPECT_THAT(refusal("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{\"title\":\"\xFF\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal("{} {}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refusal(R"({"minimum":1e999})"), HasSubstr("range of a double"));
}

TEST(SchemaRefusal, LongPointersAreCutAtACharacter) {
  EXPECT_EQ(child_pointer("#/properties", "a/b~"), "#/properties/a~1b~0");
  const auto cut = child_pointer("#/properties", std::string(100'000, 'x'));
  EXPECT_EQ(cut, "#/properties/" + std::string(243, 'x') + "…");
  EXPECT_EQ(child_pointer(cut, "y"), cut);
  std::string wide = "#/";
  for (int i = 0; i < 1'000; ++i) wide += "ä";
  const auto shown = shown_pointer(wide);
  EXPECT_EQ(shown, wide.substr(0, 256) + "…");
  EXPECT_EQ(child_pointer(wide, "y"), shown);
  EXPECT_FALSE(first_invalid_utf8(shown_pointer("#" + wide.substr(1))));
}

// Every property below the long name is a part of the schema that waits.
TEST(SchemaRefusal, LongNamesAreNotKeptForEveryPropertyBelow) {
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto with_properties = [](const std::string& name) {
    std::string schema =
        R"({"$ref":"#/$defs/)" + name + R"(","$defs":{")" + name + R"(":{"properties":{)";
    for (int group = 0; group < 60; ++group) {
      schema += (group == 0 ? "\"g" : ",\"g") + std::to_string(group) + R"(":{"properties":{)";
      for (int i = 0; i < 90; ++i) {
        const auto number = std::to_string(group * 90 + i);
        schema += (i == 0 ? "\"" : ",\"") + number + R"(":{"const":)" + number + "}";
      }
      schema += "}}";
    }
    return schema + "}}}}";
  };
  ASSERT_EQ(refusal(with_properties("short")), "taken");
  const auto before = peak_kib();
  // Once in the pointer, and once where it leads.
  const auto schema = with_properties(std::string(60'000, 'n'));
  ASSERT_LT(schema.size(), SchemaBounds::kBytes);
  EXPECT_EQ(refusal(schema), "taken");
  EXPECT_LT(peak_kib() - before, 200L << 10U);
}

TEST(SchemaRefusal, BoundsOfCounts) {
  std::string many = R"({"anyOf":[{"const":0})";
  for (int i = 1; i < 10'000; ++i) many += ",{\"const\":" + std::to_string(i) + "}";
  EXPECT_THAT(refusal(many + "]}"), AllOf(HasSubstr("10000 schemas"), HasSubstr("`enum`")));
  many = R"({"enum":[0)";
  for (int i = 1; i <= 10'000; ++i) many += "," + std::to_string(i);
  EXPECT_THAT(refusal(many + "]}"), HasSubstr("10001 values"));
  many = R"({"properties":{"p":{})";
  for (int i = 1; i <= 1'000; ++i) many += ",\"p" + std::to_string(i) + "\":{}";
  EXPECT_THAT(refusal(many + "}}"), HasSubstr("1001 members"));
  EXPECT_THAT(refusal(R"({"minLength":1000001})"), HasSubstr("`minLength`"));
  EXPECT_THAT(refusal(R"({"minItems":1e300})"), HasSubstr("`minItems`"));
}

TEST(SchemaRefusal, NestedAlternativesAreCountedTogether) {
  std::string schema = R"({"anyOf":[)";
  for (int i = 0; i < 20; ++i) {
    schema += (i == 0 ? R"({"anyOf":[)" : R"(,{"anyOf":[)");
    for (int k = 0; k < 20; ++k) {
      schema +=
          (k == 0 ? "" : ",") + std::string("{\"maxLength\":") + std::to_string(i * 20 + k) + "}";
    }
    schema += "]}";
  }
  EXPECT_THAT(refusal(schema + "]}"), HasSubstr("256 alternatives"));
}

// Every level doubles: 2^30 parts if they were joined one by one.
TEST(SchemaRefusal, DoublingPartsEndInAnError) {
  for (const std::string word : {"allOf", "anyOf"}) {
    std::string schema = R"({"$ref":"#/$defs/d0","$defs":{)";
    for (int i = 0; i < 30; ++i) {
      const auto next = "{\"$ref\":\"#/$defs/d" + std::to_string(i + 1) + "\",\"minLength\":1}";
      schema += "\"d" + std::to_string(i) + "\":{\"" + word + "\":[" + next + "," + next + "]},";
    }
    EXPECT_THAT(refusal(schema + R"("d30":{"type":"string"}}})"),
                word == "allOf" ? HasSubstr("repeats its parts too often") : HasSubstr("taken"));
  }
}

TEST(SchemaRefusal, ManyJoinedNamesEndInAnError) {
  std::string schema = R"({"type":"object","allOf":[{})";
  for (int i = 0; i < 200; ++i) {
    schema += R"(,{"required":["n")";
    for (int k = 0; k < 100; ++k) schema += ",\"n" + std::to_string(i * 100 + k) + "\"";
    schema += "]}";
  }
  EXPECT_THAT(refusal(schema + "]}"), testing::AnyOf(HasSubstr("more than 2000 names"),
                                                     HasSubstr("repeats its parts too often")));
}

TEST(SchemaRefusal, LargeGrammarsEndInAnError) {
  std::string names = R"({"additionalProperties":true,"properties":{"p":{})";
  std::string lengths = R"({"properties":{"p":{})";
  std::string plain = lengths;
  for (int i = 0; i < 999; ++i) {
    const auto number = std::to_string(i);
    std::string name;
    while (name.size() < 150) name += number + "-";
    names += ",\"" + name + "\":{}";
    lengths += ",\"" + number + "\":{\"maxLength\":" + std::to_string(500 + i) + "}";
    plain += ",\"" + number + "\":{}";
  }
  EXPECT_THAT(refusal(names + "}}"), HasSubstr("20000 rules"));
  EXPECT_THAT(refusal(lengths + "}}"), HasSubstr("too large as a grammar"));
  EXPECT_EQ(refusal(plain + "}}"), "taken");
}

}  // namespace
}  // namespace berth::worker
