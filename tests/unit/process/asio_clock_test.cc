#include "supervisor/process/asio_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/process/loop.h"

namespace berth::process {
namespace {

using ::testing::ElementsAre;
using testing::run_until;

class AsioClockTest : public ::testing::Test {
 protected:
  boost::asio::io_context io_{1};
  AsioClock clock_{io_};
};

TEST_F(AsioClockTest, ClocksAreThoseOfTheKernel) {
  const SteadyTime steady = clock_.now();
  EXPECT_LE(steady, clock_.now());
  EXPECT_LE(steady.time_since_epoch(), std::chrono::steady_clock::now().time_since_epoch());
  // Boot time also counts what was spent suspended.
  EXPECT_GE(clock_.boot_now().time_since_epoch() + std::chrono::seconds(1),
            steady.time_since_epoch());
  const auto wall = std::chrono::system_clock::now();
  EXPECT_LE(clock_.wall_now(),
            std::chrono::ceil<std::chrono::milliseconds>(wall) + std::chrono::minutes(1));
}

TEST_F(AsioClockTest, CallsOnceNotBeforeTheTimeAndNeverWithinTheCall) {
  int calls = 0;
  SteadyTime called{};
  const SteadyTime when = clock_.now() + std::chrono::milliseconds(5);
  const Timer timer = clock_.sleep_until(when, [&] {
    ++calls;
    called = clock_.now();
  });
  EXPECT_TRUE(timer.armed());
  EXPECT_EQ(calls, 0);
  io_.run();
  EXPECT_EQ(calls, 1);
  EXPECT_GE(called, when);
}

TEST_F(AsioClockTest, PastTimesAreDueAtOnceButNotWithinTheCall) {
  int calls = 0;
  const Timer timer = clock_.sleep_until(SteadyTime{}, [&] { ++calls; });
  EXPECT_EQ(calls, 0);
  io_.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(AsioClockTest, TimersAreDueInTheOrderOfTheirTimes) {
  std::vector<int> order;
  const SteadyTime now = clock_.now();
  const Timer late =
      clock_.sleep_until(now + std::chrono::milliseconds(3), [&] { order.push_back(2); });
  const Timer early =
      clock_.sleep_until(now + std::chrono::milliseconds(1), [&] { order.push_back(1); });
  io_.run();
  EXPECT_THAT(order, ElementsAre(1, 2));
}

TEST_F(AsioClockTest, DestroyingCancels) {
  int calls = 0;
  {
    const Timer timer = clock_.sleep_for(std::chrono::milliseconds(1), [&] { ++calls; });
  }
  io_.run();
  EXPECT_EQ(calls, 0);
}

TEST_F(AsioClockTest, CancelsAlsoWhatIsDueAlready) {
  // Both are due when the first one runs, and it takes the second away.
  int calls = 0;
  Timer second;
  const Timer first = clock_.sleep_until(SteadyTime{}, [&] {
    ++calls;
    second.reset();
  });
  second = clock_.sleep_until(SteadyTime{}, [&] { ++calls; });
  io_.run();
  EXPECT_EQ(calls, 1);
}

TEST_F(AsioClockTest, ATimerMayDestroyItselfOrArmItselfAnew) {
  auto state = std::make_shared<int>(0);
  Timer timer;
  timer = clock_.sleep_until(SteadyTime{}, [&timer, &clock = clock_, state] {
    timer.reset();
    ++*state;  // the callback's own captures live on
    timer = clock.sleep_until(SteadyTime{}, [state] { ++*state; });
  });
  io_.run();
  EXPECT_EQ(*state, 2);
}

TEST_F(AsioClockTest, FarTimesAreNoProblem) {
  Timer timer = clock_.sleep_until(SteadyTime::max(), [] { FAIL(); });
  io_.poll();
  timer.reset();
  io_.run();
}

TEST_F(AsioClockTest, PostRunsLaterAndInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    clock_.post([&order, i] { order.push_back(i); });
  }
  EXPECT_TRUE(order.empty());
  clock_.post([&] { clock_.post([&] { order.push_back(9); }); });
  io_.run();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 9));
}

TEST_F(AsioClockTest, PostFromAnotherThreadRunsHere) {
  std::optional<std::thread::id> ran;
  std::thread other([&] { clock_.post([&ran] { ran = std::this_thread::get_id(); }); });
  other.join();
  ASSERT_TRUE(run_until(io_, [&] { return ran.has_value(); }));
  EXPECT_EQ(*ran, std::this_thread::get_id());
}

}  // namespace
}  // namespace berth::process
