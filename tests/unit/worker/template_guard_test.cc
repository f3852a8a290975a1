#include "worker/template/template_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "worker/template/chat_template.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

std::string guarded(std::string_view source) {
  const auto text = guard_template(source);
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text.value_or("");
}

// Why a template is refused; also by ChatTemplate.
std::string refused(const std::string& source) {
  const auto parsed = ChatTemplate::parse(source, "", "");
  EXPECT_FALSE(parsed.has_value());
  if (parsed) return "";
  EXPECT_EQ(parsed.error().reason, Reason::kTemplateFailed);
  return parsed.error().message;
}

std::string rendered(const std::string& source) {
  const auto parsed = ChatTemplate::parse(source, "", "");
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  if (!parsed) return "";
  return parsed->render(R"([{"role":"user","content":"x"}])", "", true).value_or("failed");
}

std::string repeat(std::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

TEST(TemplateGuard, LeavesATemplateAsItIs) {
  constexpr std::string_view kSource =
      "{%- for m in messages -%}\n{{ {'a': {'b': '}}'}}['a'] }} { # \"{{ \"%}\" }}{% endfor %}";
  EXPECT_EQ(guarded(kSource), kSource);
}

TEST(TemplateGuard, EmptiesCommentsAndKeepsTheirSpaceControl) {
  EXPECT_EQ(guarded("a {# {{ ' ( #} b"), "a {# #} b");
  EXPECT_EQ(guarded("a {#- x -#} b"), "a {#- -#} b");
  EXPECT_EQ(guarded("{#-#}{##}{#--#}{#}#}"), "{#- #}{# #}{#- -#}{# #}");
  EXPECT_EQ(rendered("a {#- x -#} b"), "ab");
  EXPECT_EQ(rendered("a {# x -#} b"), "a b");
  EXPECT_EQ(rendered("a\n  {# x #}\nb"), "a\nb");
}

TEST(TemplateGuard, LooksNotForCommentsInLiterals) {
  EXPECT_EQ(rendered("{{ '{# no #}' }}{% set a = \"it's {#\" %}{{ a }}{# yes #}"),
            "{# no #}it's {#");
  EXPECT_EQ(rendered(R"({{ 'a\'{#' }}|{{ '\\' }}{# yes #}|)"), R"(a'{#|\|)");
}

TEST(TemplateGuard, LongCommentsAreHarmless) {
  EXPECT_EQ(rendered("a{# " + std::string(200000, 'x') + " #}b"), "ab");
  EXPECT_EQ(rendered("a{{ '{#' }}" + repeat("x. ", 20000)).size(), 60003U);
  EXPECT_THAT(refused("a{# " + std::string(200000, 'x')), HasSubstr("without end at byte 1"));
}

TEST(TemplateGuard, RefusesDeepNesting) {
  for (const char* const bracket : {"(", "[", "{ "}) {
    EXPECT_THAT(refused("{{ " + repeat(bracket, 100000)), HasSubstr("deeper than 200"));
  }
  EXPECT_EQ(rendered("{{ " + repeat("(", 200) + "7" + repeat(")", 200) + " }}"), "7");
  EXPECT_THAT(refused(repeat("{% if 1 %}", 10000)), HasSubstr("blocks nested deeper than 200"));
  EXPECT_EQ(rendered(repeat("{% if 1 %}", 200) + "7" + repeat("{% endif %}", 200)), "7");
  EXPECT_EQ(rendered(repeat("{% set a=1 %}", 250)), "");
}

TEST(TemplateGuard, RefusesLongTagsAndRuns) {
  EXPECT_THAT(refused("{{ 1" + repeat("+1", 50000) + " }}"), HasSubstr("16384 bytes at byte 0"));
  EXPECT_THAT(refused("{% if a" + repeat(" ", 200000) + "%}"), HasSubstr("16384 bytes at byte 0"));
  EXPECT_THAT(refused("a" + repeat(" ", 200000) + "{%- if 1 %}"), HasSubstr("in a row"));
  EXPECT_EQ(rendered(repeat("word, word. ", 3000)).size(), 36000U);
}

TEST(TemplateGuard, RefusesACommentWithinATag) {
  EXPECT_THAT(refused("{{ 1 + {# no #} 2 }}"), HasSubstr("within a tag at byte 8"));
  EXPECT_THAT(refused("{{# no }}"), HasSubstr("within a tag"));
}

TEST(TemplateGuard, RefusesALongTemplate) {
  EXPECT_THAT(refused(repeat("x.", 131073)), HasSubstr("262146 bytes; at most 262144"));
}

}  // namespace
}  // namespace berth::worker
