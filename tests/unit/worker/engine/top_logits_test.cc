#include "worker/engine/top_logits.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace berth::worker {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::int32_t> top(const std::vector<float>& logits, std::size_t count) {
  std::vector<ScoredToken> found;
  top_logits(logits, count, found);
  std::vector<std::int32_t> tokens;
  for (const auto& one : found) {
    EXPECT_EQ(one.logit, logits[static_cast<std::size_t>(one.token)]);
    tokens.push_back(one.token);
  }
  return tokens;
}

std::vector<std::int32_t> sorted(const std::vector<float>& logits, std::size_t count) {
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](auto left, auto right) {
    return logits[static_cast<std::size_t>(left)] > logits[static_cast<std::size_t>(right)];
  });
  std::erase_if(tokens,
                [&](auto token) { return logits[static_cast<std::size_t>(token)] == -kInfinity; });
  tokens.resize(std::min(tokens.size(), count));
  return tokens;
}

TEST(TopLogits, OfNothing) {
  EXPECT_TRUE(top({}, 5).empty());
  EXPECT_TRUE(top({1, 2}, 0).empty());
  EXPECT_TRUE(top({-kInfinity, -kInfinity}, 2).empty());
}

TEST(TopLogits, OfRisingFallingAndEqualOutputs) {
  std::vector<float> logits(5000);
  std::iota(logits.begin(), logits.end(), 0.0F);
  EXPECT_EQ(top(logits, 40), sorted(logits, 40));
  std::reverse(logits.begin(), logits.end());
  EXPECT_EQ(top(logits, 40), sorted(logits, 40));
  std::fill(logits.begin(), logits.end(), 1.0F);
  EXPECT_EQ(top(logits, 40), sorted(logits, 40));
  EXPECT_EQ(top(logits, 5000), sorted(logits, 5000));
  EXPECT_EQ(top(logits, 6000), sorted(logits, 5000));
}

// Few different values: many equal ones.
RC_GTEST_PROP(TopLogits, IsTheBeginningOfAStableSort, ()) {
  const auto values = *rc::gen::container<std::vector<int>>(rc::gen::inRange(-1, 40));
  std::vector<float> logits;
  for (const int value : values) {
    logits.insert(logits.end(), 7, value < 0 ? -kInfinity : static_cast<float>(value * 37 % 41));
  }
  const auto count = *rc::gen::inRange<std::size_t>(0, 60);
  RC_ASSERT(top(logits, count) == sorted(logits, count));
}

}  // namespace
}  // namespace berth::worker
