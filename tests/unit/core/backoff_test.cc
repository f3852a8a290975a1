#include "supervisor/core/backoff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace berth::core {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr SteadyTime kNow{seconds(100)};

TEST(RestartBackoff, L9_NothingStandsAgainstAFirstStart) {
  EXPECT_LE(RestartBackoff().not_before(), kNow);
}

TEST(RestartBackoff, L9_DoublesFromOneSecondToThirty) {
  RestartBackoff backoff;
  std::vector<Duration> waits;
  for (int death = 0; death < 8; ++death) {
    backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
    waits.push_back(backoff.not_before() - kNow);
  }
  const std::vector<Duration> expected = {seconds(1),  seconds(2),  seconds(4),  seconds(8),
                                          seconds(16), seconds(30), seconds(30), seconds(30)};
  EXPECT_EQ(waits, expected);
}

TEST(RestartBackoff, L9_TenStableMinutesAreForgiven) {
  RestartBackoff backoff;
  for (int death = 0; death < 5; ++death) backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  backoff.on_end(ReadyEnd::kDied, minutes(10), kNow);
  EXPECT_EQ(backoff.not_before() - kNow, seconds(1));
  EXPECT_EQ(backoff.deaths(), 1U);
}

TEST(RestartBackoff, L9_AnEndThatWeOrderedIsNoDeath) {
  RestartBackoff backoff;
  backoff.on_end(ReadyEnd::kStopped, seconds(5), kNow);
  EXPECT_EQ(backoff.deaths(), 0U);
  EXPECT_LE(backoff.not_before(), kNow);
}

TEST(RestartBackoff, L9_ThreeDeathsWithinTwoMinutesAreACrashLoop) {
  RestartBackoff backoff;
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow + seconds(60));
  EXPECT_FALSE(backoff.crash_loop());
  RestartBackoff slower = backoff;
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow + seconds(120));
  EXPECT_TRUE(backoff.crash_loop());
  slower.on_end(ReadyEnd::kDied, seconds(5), kNow + seconds(121));
  EXPECT_FALSE(slower.crash_loop());
  // The last three count.
  slower.on_end(ReadyEnd::kDied, seconds(5), kNow + seconds(150));
  EXPECT_TRUE(slower.crash_loop());
}

TEST(RestartBackoff, L9_AnEndByUsIsNoDeathOfALoop) {
  RestartBackoff backoff;
  for (int i = 0; i < 5; ++i) backoff.on_end(ReadyEnd::kStopped, seconds(5), kNow);
  EXPECT_FALSE(backoff.crash_loop());
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  EXPECT_FALSE(backoff.crash_loop());
  // A stable time ends the count.
  backoff.on_end(ReadyEnd::kDied, minutes(10), kNow);
  EXPECT_FALSE(backoff.crash_loop());
}

TEST(RestartBackoff, L20_WhatWeEndedForStandingStillWaitsAndMakesNoLoop) {
  RestartBackoff backoff;
  for (int i = 0; i < 3; ++i) backoff.on_end(ReadyEnd::kGivenUp, seconds(5), kNow);
  EXPECT_EQ(backoff.not_before() - kNow, seconds(4));
  EXPECT_FALSE(backoff.crash_loop());
  for (int i = 0; i < 2; ++i) backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  EXPECT_FALSE(backoff.crash_loop());
  backoff.on_end(ReadyEnd::kDied, seconds(5), kNow);
  EXPECT_TRUE(backoff.crash_loop());
}

}  // namespace
}  // namespace berth::core
