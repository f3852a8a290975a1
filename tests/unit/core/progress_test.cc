#include "supervisor/core/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kStart{seconds(100)};

TEST(LoadProgress, WeightsAreMostOfALoad) {
  LoadProgress progress(kStart);
  progress.update("weights", 0.5F);
  EXPECT_NEAR(progress.fraction(), 0.47F, 0.001F);
  progress.update("context", 0);
  EXPECT_NEAR(progress.fraction(), 0.92F, 0.001F);
  progress.update("warmup", 1);
  EXPECT_NEAR(progress.fraction(), 1.0F, 0.001F);
}

TEST(LoadProgress, NeverGoesBack) {
  LoadProgress progress(kStart);
  progress.update("context", 0.5F);
  const float before = progress.fraction();
  progress.update("weights", 0.1F);
  EXPECT_EQ(progress.fraction(), before);
  EXPECT_EQ(progress.phase(), "weights");
}

TEST(LoadProgress, SaysWhenATenthOrAPhaseIsReached) {
  LoadProgress progress(kStart);
  EXPECT_TRUE(progress.update("weights", 0));
  EXPECT_FALSE(progress.update("weights", 0.01F));
  EXPECT_TRUE(progress.update("weights", 0.2F));
  EXPECT_FALSE(progress.update("weights", 0.2F));
  EXPECT_TRUE(progress.update("context", 0));
}

TEST(LoadProgress, TakesNonsenseForNothing) {
  LoadProgress progress(kStart);
  progress.update("weights", std::numeric_limits<float>::quiet_NaN());
  progress.update("weights", -3);
  EXPECT_NEAR(progress.fraction(), 0.02F, 0.001F);
  progress.update("weights", 7);
  EXPECT_NEAR(progress.fraction(), 0.92F, 0.001F);
  progress.update("dancing", 0.5F);
  EXPECT_EQ(progress.phase(), "dancing");
  EXPECT_NEAR(progress.fraction(), 0.92F, 0.001F);
}

TEST(LoadProgress, EtaIsUnknownAtFirst) {
  EXPECT_FALSE(LoadProgress(kStart).eta(kStart + seconds(1)));
}

TEST(LoadProgress, EtaByTheOwnRate) {
  LoadProgress progress(kStart);
  progress.update("weights", 0.5F);  // 47 %
  const auto eta = progress.eta(kStart + milliseconds(4700));
  ASSERT_TRUE(eta);
  EXPECT_NEAR(static_cast<double>(eta->count()), 5300, 5);
}

TEST(LoadProgress, EtaByTheLastLoad) {
  LoadProgress progress(kStart);
  progress.expect(seconds(10));
  EXPECT_EQ(progress.eta(kStart + seconds(2)), milliseconds(8000));
  // Longer than the last time, and nothing of its own to go by.
  EXPECT_FALSE(progress.eta(kStart + seconds(11)));
}

TEST(LoadProgress, EtaTurnsFromTheLastLoadToTheOwnRate) {
  LoadProgress progress(kStart);
  progress.expect(seconds(10));
  progress.update("weights", 0.5F);
  const auto eta = progress.eta(kStart + milliseconds(9400));  // own: 10.6 s, known: 0.6 s
  ASSERT_TRUE(eta);
  EXPECT_NEAR(static_cast<double>(eta->count()), 10600 * 0.47 + 600 * 0.53, 10);
}

}  // namespace
}  // namespace berth::core
