#include "worker/template/jinja_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/worker/template/rendering.h"

namespace berth::worker {
namespace {

std::string with(std::string_view variables, const std::string& source) {
  return rendered(source, ChatRequest{kHello, {}, variables, true});
}

TEST(JinjaFunctions, WritesJsonAsPythonDoes) {
  constexpr std::string_view kValue =
      R"({"v":{"a":[1,2.5,1e20,1e-7,true,null,"é\"\\\n\u0001\u007f"],"b":{},"c":[]}})";
  EXPECT_EQ(with(kValue, "{{ v | tojson }}"),
            "{\"a\": [1, 2.5, 1e+20, 1e-07, true, null, \"é\\\"\\\\\\n\\u0001\x7f\"], \"b\": {}, "
            "\"c\": []}");
  EXPECT_EQ(with(R"({"v":{"a":[1],"b":{}}})", "{{ v | tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
  EXPECT_EQ(with(R"({"v":{"b":"é😀","a":1}})",
                 "{{ v | tojson(ensure_ascii=true, separators=(',',':'), sort_keys=true) }}"),
            R"({"a":1,"b":"\u00e9\ud83d\ude00"})");
}

TEST(JinjaFunctions, CountsCharacters) {
  EXPECT_EQ(with(R"({"v":"añ😀"})", "{{ v | length }} {{ [1, 2] | count }} {{ {'a': 1} | length }}"),
            "3 2 1");
}

TEST(JinjaFunctions, TrimsAllOfPythonsWhiteSpace) {
  EXPECT_EQ(with(R"({"v":"\u00a0\u3000 a b\u2028\n\u001c"})", "[{{ v | trim }}]"), "[a b]");
  EXPECT_EQ(with(R"({"v":" \u00a0 "})", "[{{ v | trim }}]"), "[]");
  EXPECT_EQ(with(R"({"v":"xxaxx"})", "[{{ v | trim('x') }}]"), "[a]");
}

TEST(JinjaFunctions, SelectsByAttribute) {
  constexpr std::string_view kItems =
      R"({"v":[{"r":"a","f":{"n":1}},{"r":"b","f":{"n":2}},{"r":"","f":{}}]})";
  EXPECT_EQ(with(kItems, "{{ v | selectattr('r', 'equalto', 'b') | list | length }}"), "1");
  EXPECT_EQ(with(kItems, "{{ v | rejectattr('r', 'in', ['a', 'b']) | list | length }}"), "1");
  EXPECT_EQ(with(kItems, "{{ v | selectattr('f.n', 'defined') | list | length }}"), "2");
  EXPECT_EQ(with(kItems, "{{ (v | selectattr('r') | last).r }}"), "b");
}

TEST(JinjaFunctions, FindsFirstAndLast) {
  EXPECT_EQ(with(R"({"v":"éb😀"})", "{{ v | first }}{{ v | last }}{{ [1, 2] | first }}"), "é😀1");
  EXPECT_EQ(with(R"({"v":["a","b"]})", "{{ v | reverse | join(',') }}"), "b,a");
}

TEST(JinjaFunctions, ChangesTexts) {
  EXPECT_EQ(rendered("{{ 'aXbX' | replace('X', '--') }} {{ 'hELLO' | capitalize }}"),
            "a--b-- Hello");
  EXPECT_EQ(rendered("{{ 'aB c-d' | title }} {{ ['b', 'A', 'c'] | sort | join }} "
                     "{{ [3, 1, 2] | sort(reverse=true) | first }} {{ nothing | d('x') }}"),
            "Ab C-D Abc 3 x");
}

TEST(JinjaFunctions, TellsTheTime) {
  EXPECT_EQ(rendered("{{ strftime_now('%Y') }}").size(), 4U);
}

TEST(JinjaFunctions, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(rendered("{{ 1 | tojson(color=2) }}"), testing::HasSubstr("no argument color"));
  EXPECT_THAT(rendered("{{ [] | selectattr(1, 2, 3, 4, 5, 6) }}"),
              testing::HasSubstr("too many arguments"));
}

}  // namespace
}  // namespace berth::worker
