#include "worker/grammar/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>
#include <boost/json/string_view.hpp>

#include <string>

#include "tests/unit/worker/grammar/accepts.h"

namespace berth::worker {
namespace {

using testing::HasSubstr;

std::string schema_of(std::string_view pattern) {
  return R"({"type":"string","pattern":)" +
         boost::json::serialize(boost::json::string_view(pattern.data(), pattern.size())) + "}";
}

bool accepts(std::string_view pattern, std::string_view json_string) {
  return test::accepts(schema_of(pattern), json_string);
}

TEST(Pattern, AnchoredExpressions) {
  EXPECT_TRUE(accepts("^abc$", R"("abc")"));
  EXPECT_FALSE(accepts("^abc$", R"("abcd")"));
  EXPECT_TRUE(accepts("^\\d{3}-[A-Z]{2,}$", R"("123-AB")"));
  EXPECT_FALSE(accepts("^\\d{3}-[A-Z]{2,}$", R"("123-A")"));
  EXPECT_TRUE(accepts("^(a|bc)*$", R"("abcbca")"));
  EXPECT_TRUE(accepts("^(?:\\w+)(\\.\\w+)*@example\\.org$", R"("a_b.c@example.org")"));
  EXPECT_TRUE(accepts("^$", R"("")"));
  EXPECT_FALSE(accepts("^$", R"("a")"));
  EXPECT_TRUE(accepts("^[^a-z]+?$", R"("A1ö")"));
  EXPECT_FALSE(accepts("^[^a-z]+?$", R"("a")"));
  EXPECT_TRUE(accepts("^a{0}b$", R"("b")"));
}

TEST(Pattern, WithoutAnchorsMatchesAnywhere) {
  EXPECT_TRUE(accepts("b+", R"("abbc")"));
  EXPECT_FALSE(accepts("b+", R"("ac")"));
  EXPECT_TRUE(accepts("^a", R"("abc")"));
  EXPECT_FALSE(accepts("^a", R"("ba")"));
  EXPECT_TRUE(accepts("^a|c$", R"("xyzc")"));
  EXPECT_TRUE(accepts("^a|c$", R"("axyz")"));
  EXPECT_FALSE(accepts("^a|c$", R"("xaz")"));
}

TEST(Pattern, CharactersThatJsonEscapes) {
  EXPECT_TRUE(accepts("^\"\\\\$", R"("\"\\")"));
  EXPECT_TRUE(accepts("^\\n\\t\\x01$", R"("\n\t\u0001")"));
  EXPECT_TRUE(accepts("^.$", R"("\"")"));
  EXPECT_TRUE(accepts("^[\"'\\\\/]+$", R"("'/\"\\")"));
  EXPECT_FALSE(accepts("^.$", R"("\n")"));
  EXPECT_TRUE(accepts("^\\s$", R"("\t")"));
  EXPECT_TRUE(accepts("^\\u00e4[ä-ü]$", R"("äö")"));
  EXPECT_TRUE(accepts("^[\\d.-]+$", R"("1.5-2")"));
}

TEST(Pattern, LargeCounts) {
  EXPECT_TRUE(accepts("^[a-z]{1,5000}$", '"' + std::string(5'000, 'q') + '"'));
  EXPECT_FALSE(accepts("^[a-z]{1,5000}$", '"' + std::string(5'001, 'q') + '"'));
  EXPECT_TRUE(accepts("^((a{1,100}b){1,100}c){1,100}$", R"("abaabc")"));
}

TEST(Pattern, RefusesByName) {
  const auto refused = [](std::string_view pattern) { return test::refusal(schema_of(pattern)); };
  EXPECT_THAT(refused("^(?=a)b$"), HasSubstr("look-around"));
  EXPECT_THAT(refused("(?<name>a)"), HasSubstr("named groups"));
  EXPECT_THAT(refused("(a)\\1"), HasSubstr("\\1"));
  EXPECT_THAT(refused("\\bword"), HasSubstr("\\b"));
  EXPECT_THAT(refused("\\p{L}"), HasSubstr("\\p"));
  EXPECT_THAT(refused("(^a|b$)"), HasSubstr("`^` and `$`"));
  EXPECT_THAT(refused("a$b"), HasSubstr("`$`"));
  EXPECT_THAT(refused("(a*)*"), HasSubstr("may be empty"));
  EXPECT_THAT(refused("a**"), HasSubstr("quantifier"));
  EXPECT_THAT(refused("*a"), HasSubstr("quantifier"));
  EXPECT_THAT(refused("a{2,1}"), HasSubstr("maximum below"));
  EXPECT_THAT(refused("a{,2}"), HasSubstr("number"));
  EXPECT_THAT(refused("a{1000001}"), HasSubstr("1000000"));
  EXPECT_THAT(refused("(a"), HasSubstr("without `)`"));
  EXPECT_THAT(refused("a)"), HasSubstr("without `(`"));
  EXPECT_THAT(refused("[a"), HasSubstr("without `]`"));
  EXPECT_THAT(refused("[b-a]"), HasSubstr("range"));
  EXPECT_THAT(refused("a\\"), HasSubstr("at the end"));
  EXPECT_THAT(refused("\\u12"), HasSubstr("hexadecimal"));
  EXPECT_THAT(refused(std::string(5'000, 'a')), HasSubstr("4096"));
  EXPECT_THAT(refused(std::string(40, '(') + "a" + std::string(40, ')')),
              HasSubstr("deeper than 32"));
  EXPECT_THAT(refused("(a*)*"), HasSubstr("#: `pattern`, byte "));
}

}  // namespace
}  // namespace berth::worker
