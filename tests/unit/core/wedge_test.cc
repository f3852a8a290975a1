#include "supervisor/core/wedge.h"

#include <gtest/gtest.h>

#include <chrono>

namespace berth::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr SteadyTime kBegin{hours(3)};

class WedgeTest : public ::testing::Test {
 protected:
  // A worker that beats its heart every second.
  void beat(seconds time, const WorkPulse& pulse, std::uint64_t progress_each = 0) {
    WorkPulse next = pulse;
    for (seconds done{}; done < time; done += seconds(1)) {
      now_ += seconds(1);
      next.progress = progress_ += progress_each;
      watch_.on_time(requests_, now_);
      watch_.on_pulse(next, now_);
    }
  }
  void silence(seconds time) {
    for (seconds done{}; done < time; done += seconds(1))
      watch_.on_time(requests_, now_ += seconds(1));
  }

  SteadyTime now_ = kBegin;
  std::uint64_t progress_ = 0;
  std::uint32_t requests_ = 1;
  WedgeWatch watch_{WedgePolicy{}, kBegin};
};

TEST_F(WedgeTest, L9_ProgressThatStandsStillWithWorkInFlight) {
  beat(seconds(10), {.active = 1}, 1);
  beat(seconds(119), {.active = 1});
  EXPECT_FALSE(watch_.wedged());
  beat(seconds(1), {.active = 1});
  EXPECT_TRUE(watch_.wedged());
  EXPECT_EQ(watch_.reason(), "its progress stood still for 2 min with 1 request in flight");
}

TEST_F(WedgeTest, L9_ALongBatchThatTicksIsNotWedged) {
  beat(hours(1), {.active = 3}, 1);
  EXPECT_FALSE(watch_.wedged());
}

TEST_F(WedgeTest, L9_IdleIsNotWedged) {
  requests_ = 0;
  beat(hours(1), {});
  EXPECT_FALSE(watch_.wedged());
  EXPECT_EQ(watch_.still_for(), Duration::zero());
}

TEST_F(WedgeTest, L9_StreamsThatWaitForTheirClientsDoNotCount) {
  beat(hours(1), {.active = 2, .waiting = 4, .paused = 2});
  EXPECT_FALSE(watch_.wedged());
  beat(seconds(121), {.active = 2, .waiting = 4, .paused = 1});
  EXPECT_TRUE(watch_.wedged());
}

TEST_F(WedgeTest, L9_NewWorkBeginsItsOwnTime) {
  beat(seconds(100), {.active = 1});
  requests_ = 0;
  beat(seconds(1), {});
  requests_ = 1;
  beat(seconds(100), {.active = 1});
  EXPECT_FALSE(watch_.wedged());
}

TEST_F(WedgeTest, L9_AWorkerThatFellSilentStandsStill) {
  beat(seconds(2), {.active = 1}, 1);
  silence(seconds(119));
  EXPECT_FALSE(watch_.wedged());
  silence(seconds(2));
  EXPECT_TRUE(watch_.wedged());
}

TEST_F(WedgeTest, L9_AWorkerThatFrozeWhileIdleStandsStillOnceItIsAsked) {
  requests_ = 0;
  beat(seconds(2), {});
  silence(hours(1));
  requests_ = 1;
  silence(seconds(120));
  EXPECT_FALSE(watch_.wedged());
  silence(seconds(15));
  EXPECT_TRUE(watch_.wedged());
}

TEST_F(WedgeTest, L9_AWorkerWithoutHeartbeatsIsNotJudged) {
  silence(hours(1));
  EXPECT_FALSE(watch_.wedged());
}

TEST_F(WedgeTest, L9_SilenceAfterTheLastRequestIsIdleness) {
  beat(seconds(2), {.active = 1}, 1);
  requests_ = 0;
  silence(hours(1));
  EXPECT_FALSE(watch_.wedged());
}

TEST_F(WedgeTest, L9_FourPredictedBatchesWhereThatIsLonger) {
  watch_.expect_batch(seconds(20));
  EXPECT_EQ(watch_.wedge_after(), seconds(120));
  watch_.expect_batch(seconds(50));
  EXPECT_EQ(watch_.wedge_after(), seconds(200));
  beat(seconds(199), {.active = 1});
  EXPECT_FALSE(watch_.wedged());
  beat(seconds(2), {.active = 1});
  EXPECT_TRUE(watch_.wedged());
}

TEST_F(WedgeTest, L9_ConfiguredOrOff) {
  watch_ = WedgeWatch({.fixed = seconds(10)}, now_);
  beat(seconds(11), {.active = 1});
  EXPECT_TRUE(watch_.wedged());
  watch_ = WedgeWatch({.fixed = Duration::zero()}, now_);
  beat(hours(1), {.active = 1});
  EXPECT_FALSE(watch_.wedged());
}

TEST_F(WedgeTest, L9_WhatNobodyWatchedIsNotCounted) {
  beat(seconds(10), {.active = 1});
  now_ += hours(8);
  watch_.on_time(1, now_);
  EXPECT_FALSE(watch_.wedged());
}

}  // namespace
}  // namespace berth::core
