#include "worker/template/template_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/worker/template/rendering.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

// Why a template is refused.
std::string refused(const std::string& source) {
  const auto result = ChatTemplate::parse(source, "", "");
  EXPECT_FALSE(result.has_value());
  if (result) return "";
  EXPECT_EQ(result.error().reason, Reason::kTemplateFailed);
  return result.error().message;
}

std::string repeat(std::string_view text, int times) {
  std::string repeated;
  for (int i = 0; i < times; ++i) repeated += text;
  return repeated;
}

TEST(TemplateGuard, CommentsPrintNothing) {
  EXPECT_EQ(rendered("a {# {{ ' ( #} b"), "a  b");
  EXPECT_EQ(rendered("a {#- x -#} b"), "ab");
  EXPECT_EQ(rendered("a {# x -#} b"), "a b");
  EXPECT_EQ(rendered("a\n  {# x #}\nb"), "a\nb");
  EXPECT_EQ(rendered("a\n  {#+ x +#}\nb"), "a\n  \nb");
  EXPECT_EQ(rendered("{#-#}{##}{#--#}."), ".");
}

TEST(TemplateGuard, LooksNotForCommentsInLiterals) {
  EXPECT_EQ(rendered("{{ '{# no #}' }}{% set a = \"it's {#\" %}{{ a }}{# yes #}"),
            "{# no #}it's {#");
  EXPECT_EQ(rendered(R"({{ 'a\'{#' }}|{{ '\\' }}{# yes #}|)"), R"(a'{#|\|)");
}

TEST(TemplateGuard, BlocksTakeTheirLine) {
  EXPECT_EQ(rendered("a\n  {% if 1 %}\n  b\n  {% endif %}\nc"), "a\n  b\nc");
  EXPECT_EQ(rendered("{% if 1 %}\n   {% set a = 1 %}\nb{% endif %}"), "b");
  EXPECT_EQ(rendered("a {% if 1 %} b {% endif %} c"), "a  b  c");
  EXPECT_EQ(rendered("a\n  {%+ if 1 %}\n  b{% endif +%}\nc"), "a\n    b\nc");
  EXPECT_EQ(rendered("a  {%- if 1 -%}  b  {%- endif -%}  c"), "abc");
}

// minja takes the indent of expressions, too; Jinja does not.
TEST(TemplateGuard, ExpressionsKeepTheirIndentAndLineEnd) {
  EXPECT_EQ(rendered("a\n  {{ 1 }}\nb"), "a\n  1\nb");
  EXPECT_EQ(rendered("a\n  {{- 1 -}}\nb"), "a1b");
}

TEST(TemplateGuard, LineEndsAreLineFeeds) {
  EXPECT_EQ(rendered("a\r\nb\rc\r\n"), "a\nb\nc");
  EXPECT_EQ(rendered("a\n\n"), "a\n");
}

TEST(TemplateGuard, RawBlocksAreText) {
  EXPECT_EQ(rendered("{% raw %}{{ a }}{# b #}{% if %}{% endraw %}!"), "{{ a }}{# b #}{% if %}!");
  EXPECT_EQ(rendered("a {%- raw -%} {{ {%- endraw -%} b"), "a{{b");
  EXPECT_THAT(refused("a{% raw %}"), HasSubstr("raw block without end at byte 1"));
}

TEST(TemplateGuard, BracesBesideTagsStayText) {
  EXPECT_EQ(rendered("{ {{- 1 }}"), "{1");
}

TEST(TemplateGuard, KnowsUndefined) {
  EXPECT_EQ(rendered("{{ nothing is undefined }} {{ messages is not undefined }}"), "True True");
  EXPECT_EQ(rendered("{{ 'is undefined' }}{% set this_undefined = 1 %}{{ this_undefined }}"),
            "is undefined1");
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
  EXPECT_THAT(refused("a" + repeat(" ", 200000) + "{% if 1 %}"), HasSubstr("in a row"));
  EXPECT_EQ(rendered(repeat("word, word. ", 3000)).size(), 36000U);
}

TEST(TemplateGuard, RefusesACommentWithinATag) {
  EXPECT_THAT(refused("{{ 1 + {# no #} 2 }}"), HasSubstr("within a tag at byte 8"));
  EXPECT_THAT(refused("{{# no }}"), HasSubstr("within a tag"));
}

TEST(TemplateGuard, RefusesALongTemplate) {
  EXPECT_THAT(refused(repeat("x.", 131073)), HasSubstr("262146 bytes; at most 262144"));
}

TEST(TemplateGuard, RefusesAStringWithoutEnd) {
  EXPECT_THAT(refused("a{{ 'b }}"), HasSubstr("string without end at byte 4"));
}

}  // namespace
}  // namespace berth::worker
