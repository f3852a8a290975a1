#include "supervisor/core/queue_pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "common/clock.h"

namespace berth::core {
namespace {

using std::chrono::seconds;

constexpr SteadyTime kStart{seconds(1000)};

TEST(QueuePace, M13_NothingIsSaidBeforeAnythingIsKnown) {
  QueuePace pace;
  EXPECT_EQ(pace.wait_of(1, kStart), std::nullopt);
  pace.on_free(kStart, true);
  EXPECT_EQ(pace.wait_of(1, kStart), std::nullopt);
}

TEST(QueuePace, M13_EachPlaceCostsTheTimeBetweenTwoThatWereWanted) {
  QueuePace pace;
  pace.on_free(kStart, true);
  pace.on_free(kStart + seconds(4), true);
  EXPECT_EQ(pace.wait_of(1, kStart + seconds(4)), seconds(4));
  EXPECT_EQ(pace.wait_of(3, kStart + seconds(4)), seconds(12));
  EXPECT_EQ(pace.wait_of(3, kStart + seconds(5)), seconds(11));
  EXPECT_EQ(pace.wait_of(1, kStart + seconds(60)), seconds(0)) << "any moment now";
}

TEST(QueuePace, M13_TimesInWhichNobodyWaitedDoNotCount) {
  QueuePace pace;
  pace.on_free(kStart, true);
  pace.on_free(kStart + seconds(4), false);
  pace.on_free(kStart + seconds(400), true);
  pace.pause();
  pace.on_free(kStart + seconds(900), true);
  EXPECT_EQ(pace.wait_of(2, kStart + seconds(900)), seconds(8));
}

TEST(QueuePace, M13_LateOnesWinOverEarlyOnes) {
  QueuePace pace;
  SteadyTime now = kStart;
  for (int i = 0; i < 5; ++i) pace.on_free(now += seconds(1), true);
  for (int i = 0; i < 60; ++i) pace.on_free(now += seconds(9), true);
  EXPECT_GT(*pace.wait_of(1, now), seconds(8));
}

TEST(QueuePace, M13_ALoadIsWaitedForOnlyWhereBothPartsAreKnown) {
  EXPECT_EQ(load_wait(seconds(3), seconds(4)), seconds(7));
  EXPECT_EQ(load_wait(-seconds(3), seconds(4)), seconds(4));
  EXPECT_EQ(load_wait(std::nullopt, seconds(4)), std::nullopt);
  EXPECT_EQ(load_wait(seconds(3), std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace berth::core
