#include "worker/grammar/number_range.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <string>

#include "tests/unit/worker/grammar/accepts.h"

namespace berth::worker {
namespace {

using test::GbnfMatcher;

constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

GbnfMatcher matcher_of(const std::string& range) {
  return GbnfMatcher("root ::= " + range);
}

TEST(NumberRange, SmallIntegerRangesAreExact) {
  for (int low = -35; low <= 120; low += 5) {
    for (int high = low; high <= 125; high += 7) {
      auto matcher = matcher_of(integer_range(low, high));
      for (int value = -130; value <= 130; ++value) {
        ASSERT_EQ(matcher.matches(std::to_string(value)), low <= value && value <= high)
            << low << ".." << high << ": " << value;
      }
    }
  }
}

TEST(NumberRange, EdgesOfIntegers) {
  auto least = matcher_of(integer_range(kLeast, std::nullopt));
  EXPECT_TRUE(least.matches("-9223372036854775808"));
  EXPECT_FALSE(least.matches("-9223372036854775809"));
  EXPECT_TRUE(least.matches("9999999999999999999"));
  auto most = matcher_of(integer_range(std::nullopt, kMost));
  EXPECT_TRUE(most.matches("9223372036854775807"));
  EXPECT_FALSE(most.matches("9223372036854775808"));
  EXPECT_FALSE(most.matches("007"));
  EXPECT_FALSE(most.matches("-0"));
  EXPECT_EQ(integer_range(3, 2), "");
}

TEST(NumberRange, IntegerRangesProperty) {
  EXPECT_TRUE(rc::check("an integer range takes what lies within", [] {
    auto low = *rc::gen::arbitrary<std::int64_t>();
    auto high = *rc::gen::arbitrary<std::int64_t>();
    if (*rc::gen::arbitrary<bool>()) low = low >> (*rc::gen::inRange(0, 60));
    if (low > high) std::swap(low, high);
    auto matcher = matcher_of(integer_range(low, high));
    for (int i = 0; i < 20; ++i) {
      auto value = *rc::gen::arbitrary<std::int64_t>();
      const auto near = *rc::gen::inRange<std::int64_t>(-3, 4);
      const auto way = *rc::gen::inRange(0, 3);
      if (way == 0 && low < kMost - 3 && low > kLeast + 3) value = low + near;
      if (way == 1 && high < kMost - 3 && high > kLeast + 3) value = high + near;
      RC_ASSERT(matcher.matches(std::to_string(value)) == (low <= value && value <= high));
    }
  }));
}

TEST(NumberRange, DecimalsRespectBothEnds) {
  const auto taken = [](std::optional<NumberBound> low, std::optional<NumberBound> high,
                        const std::string& text) {
    return matcher_of(decimal_range(low, high)).matches(text);
  };
  const NumberBound zero{0, false};
  const NumberBound one{1, false};
  EXPECT_TRUE(taken(zero, one, "0"));
  EXPECT_TRUE(taken(zero, one, "0.5"));
  EXPECT_TRUE(taken(zero, one, "1.00"));
  EXPECT_FALSE(taken(zero, one, "1.01"));
  EXPECT_FALSE(taken(zero, one, "-0.5"));
  EXPECT_FALSE(taken(NumberBound{0, true}, one, "0.00"));
  EXPECT_TRUE(taken(NumberBound{0, true}, one, "0.001"));
  EXPECT_FALSE(taken(zero, NumberBound{1, true}, "1"));
  EXPECT_TRUE(taken(zero, NumberBound{1, true}, "0.99"));
  EXPECT_TRUE(taken(NumberBound{-2, false}, one, "-2"));
  EXPECT_TRUE(taken(NumberBound{-2, false}, one, "-1.5"));
  EXPECT_FALSE(taken(NumberBound{-2, false}, one, "-2.5"));
  EXPECT_TRUE(taken(NumberBound{-20, false}, NumberBound{-10, false}, "-15.25"));
  EXPECT_FALSE(taken(NumberBound{-20, false}, NumberBound{-10, false}, "-9.99"));
  EXPECT_FALSE(taken(NumberBound{-20, false}, NumberBound{-10, true}, "-10"));
  EXPECT_TRUE(taken(NumberBound{5, false}, std::nullopt, "123456.75"));
  EXPECT_TRUE(taken(std::nullopt, NumberBound{5, false}, "-123456.75"));
  EXPECT_EQ(decimal_range(NumberBound{1, true}, NumberBound{1, false}), "");
}

TEST(NumberRange, BoundsInSchemas) {
  const auto* schema = R"({"type":"integer","exclusiveMinimum":0,"maximum":10.5})";
  EXPECT_FALSE(test::accepts(schema, "0"));
  EXPECT_TRUE(test::accepts(schema, "1"));
  EXPECT_TRUE(test::accepts(schema, "10"));
  EXPECT_FALSE(test::accepts(schema, "11"));
  EXPECT_TRUE(test::accepts(R"({"type":"integer","exclusiveMinimum":1.5})", "2"));
  EXPECT_FALSE(test::accepts(R"({"type":"integer","exclusiveMaximum":-1.5})", "-1"));
  EXPECT_TRUE(test::accepts(R"({"type":"integer","maximum":18446744073709551615})", "7"));
  EXPECT_TRUE(test::accepts(R"({"type":"integer","minimum":-1e300,"maximum":1e300})", "-7"));
  EXPECT_TRUE(test::accepts(R"({"type":"number","minimum":0,"maximum":1.0})", "0.25"));
  EXPECT_FALSE(test::accepts(R"({"type":"number","minimum":0,"exclusiveMinimum":0})", "0"));
}

}  // namespace
}  // namespace berth::worker
