#include "supervisor/loop_monitor.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/simulation/sim_clock.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

TEST(LoopMonitor, T100_TicksOnTheStrandItself) {
  sim::SimClock clock;
  int ticks = 0;
  const LoopMonitor monitor(clock, [&] { ++ticks; });
  clock.advance(1s);
  EXPECT_GE(ticks, 9);
  EXPECT_LE(ticks, 10);
  EXPECT_EQ(monitor.worst_lag(), Duration::zero());
}

}  // namespace
}  // namespace berth
