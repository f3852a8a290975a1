#include "worker/engine/best_logit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace berth::worker {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(BestLogit, OfEqualsTheFirst) {
  std::vector<float> logits(40, -1);
  logits[7] = logits[33] = 2;
  EXPECT_EQ(best_logit(logits), 7U);
}

TEST(BestLogit, SuppressedTokensAreNeverBest) {
  std::vector<float> logits(40, -kInfinity);
  logits[39] = -5;
  EXPECT_EQ(best_logit(logits), 39U);
}

TEST(BestLogit, BrokenOutputsHaveNone) {
  EXPECT_FALSE(best_logit({}).has_value());
  EXPECT_FALSE(best_logit(std::vector<float>(40, -kInfinity)).has_value());
  for (const std::size_t at : {0U, 15U, 16U, 31U, 32U, 39U}) {
    for (const float value : {kNan, -kNan, kInfinity}) {
      std::vector<float> logits(40, 1);
      logits[at] = value;
      EXPECT_FALSE(best_logit(logits).has_value()) << value << " at " << at;
    }
  }
}

RC_GTEST_PROP(BestLogit, IsTheFirstMaximum, (const std::vector<float>& logits)) {
  RC_PRE(!logits.empty());
  const auto best = std::max_element(logits.begin(), logits.end());
  RC_ASSERT(best_logit(logits) == static_cast<std::size_t>(best - logits.begin()));
}

}  // namespace
}  // namespace berth::worker
