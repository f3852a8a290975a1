#include "supervisor/core/stall.h"

#include <gtest/gtest.h>

#include <chrono>

namespace berth::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime kBegin{hours(3)};

// Samples once a second.
class StallTest : public ::testing::Test {
 protected:
  // Lets time pass; `change` makes each second's sample of the one before.
  template <typename Change>
  void pass(seconds time, Change change) {
    for (seconds done{}; done < time; done += seconds(1)) {
      now_ += seconds(1);
      change(sample_);
      watch_.feed(sample_, now_);
    }
  }
  void stand_still(seconds time) {
    pass(time, [](TreeSample&) {});
  }

  SteadyTime now_ = kBegin;
  TreeSample sample_;
  StallWatch watch_{StallPolicy{}, kBegin};
};

TEST_F(StallTest, L8_NothingMovesForTheWindow) {
  stand_still(seconds(59));
  EXPECT_FALSE(watch_.stalled());
  stand_still(seconds(1));
  EXPECT_TRUE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kNone);
  EXPECT_EQ(watch_.reason(), "nothing moved for 1 min, since its start");
}

TEST_F(StallTest, L8_ReasonSaysWhatMovedLast) {
  pass(seconds(20), [](TreeSample& s) { s.storage_bytes = s.storage_bytes.value_or(0) + 65536; });
  stand_still(seconds(61));
  EXPECT_TRUE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kReading);
  EXPECT_EQ(watch_.reason(), "nothing moved for 1 min 1 s; last was reading, 1 min 1 s ago");
}

TEST_F(StallTest, L8_T5_SlowButSteadyReadingIsNoStall) {
  // 8 KiB a second from storage: an hour and more for a small model.
  pass(hours(1), [](TreeSample& s) { s.storage_bytes = s.storage_bytes.value_or(0) + 8192; });
  EXPECT_FALSE(watch_.stalled());
  // From the page cache or a FUSE file system only read calls are seen.
  pass(hours(1), [](TreeSample& s) { s.read_bytes = s.read_bytes.value_or(0) + 8192; });
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(StallTest, L8_ReadingInLargeStepsIsNoStall) {
  int second = 0;
  pass(seconds(600), [&](TreeSample& s) {
    if (++second % 50 == 0) s.storage_bytes = s.storage_bytes.value_or(0) + (1U << 20U);
  });
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(StallTest, L8_WakeupsOfAProcessThatWaitsAreNoReading) {
  pass(seconds(60), [](TreeSample& s) { s.read_bytes = s.read_bytes.value_or(0) + 512; });
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_ProcessorTimeCountsAboveAFifthOfACore) {
  const auto compute = [this](Duration each) {
    pass(seconds(100),
         [each](TreeSample& s) { s.cpu_time = s.cpu_time.value_or(Duration{}) + each; });
  };
  compute(milliseconds(210));
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kComputing);
  compute(milliseconds(190));
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_AShortBurstOfComputingIsNoMovement) {
  int second = 0;
  pass(seconds(120), [&](TreeSample& s) {
    if (++second % 15 == 0) s.cpu_time = s.cpu_time.value_or(Duration{}) + milliseconds(900);
  });
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_ItsOwnProgressItsLogAndItsMemoryCount) {
  const auto moves = [this](Movement movement, auto change) {
    pass(seconds(70), change);
    EXPECT_FALSE(watch_.stalled()) << movement_name(movement);
    EXPECT_EQ(watch_.last_movement(), movement);
  };
  moves(Movement::kProgress, [](TreeSample& s) { ++s.progress; });
  moves(Movement::kLog, [](TreeSample& s) { s.log_bytes = s.log_bytes.value_or(0) + 1; });
  moves(Movement::kResident,
        [](TreeSample& s) { s.resident_bytes = s.resident_bytes.value_or(0) + 200'000; });
  moves(Movement::kDevice,
        [](TreeSample& s) { s.device_bytes = s.device_bytes.value_or(0) + (2U << 20U); });
}

// A request of ours begins and ends within a sample, and the program writes of it.
constexpr auto kAsked = [](TreeSample& s, std::uint64_t bytes) {
  s.own_requests += 2;
  s.log_bytes = s.log_bytes.value_or(0) + bytes;
};

TEST_F(StallTest, L8_AnAccessLogOfOurOwnRequestsIsNoMovement) {
  pass(seconds(60), [](TreeSample& s) { kAsked(s, 90); });
  EXPECT_TRUE(watch_.stalled());
  EXPECT_EQ(watch_.reason(), "nothing moved for 1 min, since its start");
  pass(seconds(60), [](TreeSample& s) { kAsked(s, 512); });
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_WhatIsWrittenOfARequestMayComeASampleLater) {
  int second = 0;
  pass(seconds(60), [&](TreeSample& s) {
    ++second;
    if (second % 5 == 1) s.own_requests += 2;
    if (second % 5 == 2) s.log_bytes = s.log_bytes.value_or(0) + 90;
  });
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_MoreThanOurOwnRequestsLeaveInALogIsMovement) {
  pass(seconds(100), [](TreeSample& s) { kAsked(s, 30'000); });
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kLog);
}

TEST_F(StallTest, L8_AFewLinesMoreThanAnAccessLogAreMovement) {
  pass(seconds(100), [](TreeSample& s) { kAsked(s, 600); });
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kLog);
}

TEST_F(StallTest, L8_ALogThatGrowsBetweenOurOwnRequestsIsMovement) {
  // Also of a program that works on one request of ours for long.
  int second = 0;
  pass(seconds(300), [&](TreeSample& s) {
    if (second++ % 50 == 0) s.own_requests += 1;
    s.log_bytes = s.log_bytes.value_or(0) + 10;
  });
  EXPECT_FALSE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kLog);
}

TEST_F(StallTest, L8_ALogThatIsCutIsNoMovement) {
  sample_.log_bytes = 1U << 28U;
  stand_still(seconds(1));
  sample_.log_bytes = 1U << 20U;
  stand_still(seconds(60));
  EXPECT_TRUE(watch_.stalled());
  EXPECT_EQ(watch_.last_movement(), Movement::kLog);
}

TEST_F(StallTest, L8_MemoryThatIsGivenBackMoves) {
  sample_.resident_bytes = 1ULL << 30U;
  stand_still(seconds(50));
  pass(seconds(50), [](TreeSample& s) { s.resident_bytes = *s.resident_bytes - (1U << 20U); });
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(StallTest, L8_AProcessThatTakesItsCountersAlongIsNoMovement) {
  sample_.storage_bytes = 1U << 30U;
  sample_.cpu_time = seconds(100);
  stand_still(seconds(30));
  sample_.storage_bytes = 1U << 20U;
  sample_.cpu_time = seconds(1);
  stand_still(seconds(31));
  EXPECT_TRUE(watch_.stalled());
  // What is read from there on counts again.
  pass(seconds(1), [](TreeSample& s) { s.storage_bytes = *s.storage_bytes + (1U << 20U); });
  EXPECT_FALSE(watch_.stalled());
}

TEST_F(StallTest, L8_WhatNobodyWatchedIsNoStall) {
  stand_still(seconds(10));
  now_ += hours(8);  // frozen, or the sampler was
  watch_.feed(sample_, now_);
  EXPECT_EQ(watch_.still_for(), seconds(15));
  watch_.feed(sample_, now_ - seconds(1));
  watch_.feed(sample_, now_);
  EXPECT_EQ(watch_.still_for(), seconds(15));
  stand_still(seconds(45));
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_CommandWorkersMayTakeLonger) {
  StallPolicy policy;
  policy.window = seconds(180);
  watch_ = StallWatch(policy, kBegin);
  stand_still(seconds(179));
  EXPECT_FALSE(watch_.stalled());
  stand_still(seconds(1));
  EXPECT_TRUE(watch_.stalled());
}

TEST_F(StallTest, L8_WhatCannotBeSeenIsNoEvidence) {
  sample_.storage_bytes = 5U << 20U;
  stand_still(seconds(5));
  sample_.storage_bytes.reset();
  stand_still(seconds(20));
  sample_.storage_bytes = 5U << 20U;
  stand_still(seconds(39));
  EXPECT_TRUE(watch_.stalled());
}

}  // namespace
}  // namespace berth::core
