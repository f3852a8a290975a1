#include "worker/template/string_literal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/worker/template/rendering.h"

namespace berth::worker {
namespace {

TEST(StringLiteral, ReadsEscapesAsPythonDoes) {
  EXPECT_EQ(rendered(R"({{ 'a\n\t\\\'"\x41\101\u00e9\u2581\U0001F600\a' }})"),
            "a\n\t\\'\"AA\u00e9\u2581\U0001F600\a");
  EXPECT_EQ(rendered(R"({{ "\d\/\"" }})"), R"(\d\/")");
  EXPECT_EQ(rendered("{{ 'a\\\nb' }}"), "ab");
}

TEST(StringLiteral, KeepsBytesOfText) {
  EXPECT_EQ(rendered("{{ '<｜User｜>{# {{ %}' }}"), "<｜User｜>{# {{ %}");
}

TEST(StringLiteral, RefusesWrongEscapes) {
  for (const char* const literal : {R"(\x4)", R"(\u12)", R"(\ud800)", R"(\U00110000)", R"(\xg1)"}) {
    const auto result = minja_string_literal(literal);
    ASSERT_FALSE(result.has_value()) << literal;
    EXPECT_THAT(result.error().message, testing::HasSubstr(literal));
  }
}

}  // namespace
}  // namespace berth::worker
