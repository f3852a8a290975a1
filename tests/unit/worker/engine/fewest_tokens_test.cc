#include "worker/engine/fewest_tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::worker {
namespace {

TEST(FewestTokens, CountsCharactersButSpaces) {
  EXPECT_EQ(fewest_tokens("", 4), 0U);
  EXPECT_EQ(fewest_tokens("abcd", 4), 1U);
  EXPECT_EQ(fewest_tokens("abcde", 4), 2U);
  EXPECT_EQ(fewest_tokens(" a b\tc\r\nd ", 4), 1U);
  EXPECT_EQ(fewest_tokens("\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80", 1), 3U);
}

TEST(FewestTokens, WithoutABoundNothingIsKnown) {
  EXPECT_EQ(fewest_tokens(std::string(1000, 'a'), 0), 0U);
}

TEST(FewestTokens, OfLongTexts) {
  EXPECT_EQ(fewest_tokens(std::string(300000, 'a'), 1), 300000U);
  EXPECT_EQ(fewest_tokens(std::string((1U << 16U) + 1, 'a'), 1), (1U << 16U) + 1);
}

}  // namespace
}  // namespace berth::worker
