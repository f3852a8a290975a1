#include "worker/template/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/template/rendering.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}])";
constexpr std::string_view kCalls = R"([{"role":"user","content":"q"},
    {"role":"assistant","content":null,"tool_calls":[
      {"id":"call_0123456789","type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}]},
    {"role":"tool","tool_call_id":"call_0123456789","content":"42"}])";
constexpr const char* kPlain = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
constexpr std::string_view kSystem =
    R"([{"role":"system","content":"S"},{"role":"user","content":"U"}])";

TEST(Adapter, LeavesWhatFitsAsItIs) {
  EXPECT_EQ(rendered(kPlain, {kSystem, {}, {}, true}), "[system:S][user:U]");
}

TEST(Adapter, PutsTheSystemsWordsBeforeTheUsers) {
  const auto source = std::string(
                          "{% if messages[0].role == 'system' %}"
                          "{{ raise_exception('no system role') }}{% endif %}") +
                      kPlain;
  EXPECT_EQ(rendered(source, {kSystem, {}, {}, true}), "[user:S\n\nU]");
  EXPECT_EQ(
      rendered(
          source,
          {R"([{"role":"user","content":"U"},{"role":"system","content":"S"}])", {}, {}, true}),
      "[user:U][user:S]");
}

TEST(Adapter, DescribesToolsToATemplateWithoutThem) {
  const auto text = rendered(kPlain, {kSystem, kTools, {}, true});
  EXPECT_THAT(text, HasSubstr("[system:S\n\nYou can use these tools:"));
  EXPECT_THAT(text, HasSubstr("\"name\": \"add\""));
  EXPECT_THAT(rendered("{{ tools | tojson }}" + std::string(kPlain), {kHello, kTools, {}, true}),
              Not(HasSubstr("You can use")));
}

TEST(Adapter, WritesCallsAndResultsAsText) {
  EXPECT_EQ(rendered(kPlain, {kCalls, {}, {}, true}),
            R"([user:q][assistant:{"name":"add","arguments":{"a":1}}])"
            R"([user:{"name":"add","result":"42"}])");
}

constexpr const char* kKnowsCalls =
    "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
    "<{{ c.function.name }}:{{ ARGUMENTS }}>{% endfor %}"
    "{% else %}[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}";

std::string knowing(const std::string& arguments) {
  std::string source = kKnowsCalls;
  return source.replace(source.find("ARGUMENTS"), 9, arguments);
}

// As DeepSeek V3's template: calls in its own form, but no tools. A prompt that asked for JSON and
// showed that form would have models answer in either.
TEST(Adapter, WritesPastCallsInTheFormThatItAsksFor) {
  EXPECT_THAT(rendered(knowing("c.function.arguments"), {kCalls, kTools, {}, true}),
              testing::EndsWith(R"([user:q][assistant:{"name":"add","arguments":{"a":1}}])"
                                R"([user:{"name":"add","result":"42"}])"));
}

TEST(Adapter, GivesArgumentsInTheFormThatTheTemplateWants) {
  EXPECT_THAT(rendered(knowing("c.function.arguments | tojson"), {kCalls, {}, {}, true}),
              HasSubstr(R"(<add:{"a": 1}>[tool:42])"));
  EXPECT_THAT(rendered(knowing("c.function.arguments"), {kCalls, {}, {}, true}),
              HasSubstr(R"(<add:{"a": 1}>[tool:42])"))
      << "the client's own text";
}

TEST(Adapter, ShortensIdsWhereTheTemplateWantsNineLetters) {
  const auto source =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}"
      "{{ raise_exception('ids have length 9') }}{% endif %}{{ c.id }}{{ c.function.name }}"
      "{{ c.function.arguments | tojson }}{% endfor %}{{ m.tool_call_id }}{{ m.content }}"
      "{% endfor %}";
  const auto text = rendered(source, {kCalls, {}, {}, true});
  ASSERT_THAT(text, Not(HasSubstr("error")));
  const auto id = text.substr(1, 9);
  EXPECT_THAT(text, testing::EndsWith(id + "42")) << "call and result have the same";
}

TEST(Adapter, GivesContentAsPartsToATemplateThatWantsThem) {
  EXPECT_EQ(rendered("{% for m in messages %}{% for p in m.content %}{% if p.type == 'text' %}"
                     "({{ p.text }}){% endif %}{% endfor %}{% endfor %}",
                     {kSystem, {}, {}, true}),
            "(S)(U)");
}

TEST(Adapter, GivesAnEmptyContentWhereNoneFails) {
  EXPECT_THAT(
      rendered("{% for m in messages %}{{ m.content.strip() }}{% for c in m.tool_calls or [] %}"
               "<{{ c.function.name }}>{% endfor %}{% endfor %}",
               {kCalls, {}, {}, true}),
      HasSubstr("q<add>"));
}

// As clients often send calls. DeepSeek V3's template sees no call beside any content.
TEST(Adapter, GivesNoContentWhereAnEmptyOneHidesTheCalls) {
  std::string calls(kCalls);
  calls.replace(calls.find("null"), 4, R"("")");
  const std::string source =
      "{% for m in messages %}{% if m.content is not none %}[{{ m.content }}]{% else %}"
      "{% for c in m.tool_calls %}<{{ c.function.name ~ c.function.arguments }}>{% endfor %}"
      "{% endif %}{% endfor %}";
  EXPECT_EQ(rendered(source, {calls, {}, {}, true}), R"([q]<add{"a": 1}>[42])");
  EXPECT_EQ(rendered(source, {kCalls, {}, {}, true}), R"([q]<add{"a": 1}>[42])");
}

}  // namespace
}  // namespace berth::worker
