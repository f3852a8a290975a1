#include "worker/engine/recent_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace berth::worker {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(RecentTokens, ForgetsWhatIsBehindTheWindow) {
  RecentTokens recent(3, 10);
  for (const TokenId token : {1, 2, 2, 3, 4}) EXPECT_TRUE(recent.add(token));
  EXPECT_THAT(recent.distinct(), UnorderedElementsAre(2, 3, 4));
}

TEST(RecentTokens, WithoutAWindowHasNone) {
  RecentTokens recent(0, 10);
  EXPECT_FALSE(recent.add(1));
  EXPECT_THAT(recent.distinct(), IsEmpty());
}

TEST(RecentTokens, TokensOfNoVocabularyAreLeftOut) {
  RecentTokens recent(5, 10);
  EXPECT_FALSE(recent.add(-1));
  EXPECT_FALSE(recent.add(10));
  EXPECT_THAT(recent.distinct(), IsEmpty());
}

RC_GTEST_PROP(RecentTokens, AreTheSetOfTheLast, ()) {
  const auto window = *rc::gen::inRange<std::size_t>(1, 9);
  const auto tokens = *rc::gen::container<std::vector<TokenId>>(rc::gen::inRange(0, 6));
  RecentTokens recent(static_cast<std::uint32_t>(window), 6);
  std::size_t added = 0;
  for (const auto token : tokens) {
    RC_ASSERT(recent.add(token));
    ++added;
    const auto first = added > window ? added - window : 0;
    const std::set<TokenId> expected(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                     tokens.begin() + static_cast<std::ptrdiff_t>(added));
    const auto distinct = recent.distinct();
    RC_ASSERT(distinct.size() == expected.size());
    RC_ASSERT(std::set<TokenId>(distinct.begin(), distinct.end()) == expected);
  }
}

}  // namespace
}  // namespace berth::worker
