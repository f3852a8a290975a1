#include "worker/engine/log_sum_exp.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace berth::worker {
namespace {

double exact(const std::vector<float>& logits, float highest) {
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(static_cast<double>(logit) - static_cast<double>(highest));
  }
  return std::log(sum);
}

TEST(LogSumExp, OfOneIsItself) {
  for (const float logit : {0.0F, -3.5F, 40.0F, 1e5F, -1e5F}) {
    EXPECT_EQ(log_sum_over(std::vector{logit}, logit), 0);
  }
}

TEST(LogSumExp, OfManyEqualOnes) {
  const std::vector<float> logits(150000, 2.0F);
  EXPECT_NEAR(static_cast<double>(log_sum_over(logits, 2)), std::log(150000.0), 1e-5);
}

TEST(LogSumExp, SuppressedTokensCountNothing) {
  std::vector<float> logits(100, -std::numeric_limits<float>::infinity());
  logits[41] = 3;
  EXPECT_NEAR(static_cast<double>(log_sum_over(logits, 3)), 0, 1e-6);
}

RC_GTEST_PROP(LogSumExp, IsExactToFiveDigits, ()) {
  const auto whole =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-60000, 60000)));
  // Large ones have few digits behind the point, but their differences are exact.
  const auto offset = static_cast<float>(*rc::gen::element(0, 100'000, -100'000));
  std::vector<float> logits;
  for (const int value : whole) logits.push_back(offset + static_cast<float>(value) / 1000);
  const float highest = *std::max_element(logits.begin(), logits.end());
  const auto found = static_cast<double>(log_sum_over(logits, highest));
  RC_ASSERT(std::abs(found - exact(logits, highest)) < 1e-5);
}

}  // namespace
}  // namespace berth::worker
