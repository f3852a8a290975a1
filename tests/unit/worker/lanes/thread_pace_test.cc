#include "worker/lanes/thread_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <iterator>
#include <optional>
#include <thread>

#include "worker/lanes/run_delay.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;

// A machine of so many cores, some of which are taken by others; batches of 10 ms on it.
struct Machine {
  std::uint32_t cores = 2;
  std::uint32_t taken = 0;
  SteadyTime now{std::chrono::seconds(100)};
  Duration delay{};
  std::uint32_t threads = 2;  // that compute
  ThreadPace pace{[this] { return std::optional(delay); }};

  Machine(std::uint32_t count, std::uint32_t granted) : cores(count), threads(granted) {
    pace.grant(granted);
  }

  void batch(Duration took = milliseconds(10)) {
    const auto wanted = threads + taken;
    // Every thread too many waits as long as the batch takes, but for what the sharing gives it.
    if (wanted > cores) delay += (wanted - cores) * took * 9 / 10;
    const auto began = now;
    now += took;
    if (const auto next = pace.add(began, now)) threads = *next;
    EXPECT_EQ(threads, pace.threads());
  }

  // Of so many batches, how many were computed with `count` threads.
  int batches_with(std::uint32_t count, int batches) {
    int found = 0;
    for (int i = 0; i < batches; ++i) {
      found += threads == count ? 1 : 0;
      batch();
    }
    return found;
  }
};

TEST(ThreadPace, KeepsAllThreadsAlone) {
  Machine machine(2, 2);
  EXPECT_EQ(machine.batches_with(2, 1000), 1000);
}

TEST(ThreadPace, LeavesTheCoreToABusyProcess) {
  Machine machine(2, 2);
  machine.taken = 1;
  machine.batches_with(1, 20);
  EXPECT_EQ(machine.threads, 1U);
  EXPECT_GE(machine.batches_with(1, 2000), 1900) << "tries cost more than a twentieth";
}

TEST(ThreadPace, TakesTheCoreBackWhenItIsFree) {
  Machine machine(2, 2);
  machine.taken = 1;
  machine.batches_with(1, 2000);
  machine.taken = 0;
  machine.batches_with(2, 700);
  EXPECT_EQ(machine.threads, 2U);
  EXPECT_EQ(machine.batches_with(2, 500), 500);
}

TEST(ThreadPace, AsMuchFewerAsCoresAreTaken) {
  Machine machine(16, 16);
  machine.taken = 5;
  machine.batches_with(11, 20);
  EXPECT_EQ(machine.threads, 11U);
  machine.taken = 0;
  machine.batches_with(16, 200);
  EXPECT_EQ(machine.threads, 16U) << "one after the other where there is room";
}

TEST(ThreadPace, OneThreadAtLeast) {
  Machine machine(4, 4);
  machine.taken = 64;
  machine.batches_with(1, 100);
  EXPECT_EQ(machine.threads, 1U);
}

TEST(ThreadPace, AShortDisturbanceChangesNothing) {
  Machine machine(2, 2);
  machine.batches_with(2, 10);
  machine.delay += milliseconds(15);
  EXPECT_EQ(machine.batches_with(2, 100), 100);
}

TEST(ThreadPace, AGrantIsNeverExceeded) {
  Machine machine(4, 4);
  machine.taken = 2;
  machine.batches_with(2, 50);
  machine.pace.grant(3);
  machine.threads = 3;
  machine.taken = 0;
  EXPECT_EQ(machine.batches_with(3, 1000), 1000);
}

TEST(ThreadPace, WhereTheKernelSaysNothingAllThreadsCompute) {
  for (ThreadPace::RunDelay silent :
       {ThreadPace::RunDelay(), ThreadPace::RunDelay([] { return std::optional<Duration>(); })}) {
    ThreadPace pace(silent);
    pace.grant(2);
    SteadyTime now{};
    for (int i = 0; i < 100; ++i, now += milliseconds(100)) {
      EXPECT_EQ(pace.add(now, now + milliseconds(100)), std::nullopt);
    }
  }
}

TEST(RunDelay, GrowsOrIsNotTold) {
  const auto run_delay = run_delay_reader();
  const auto before = run_delay();
  const auto after = run_delay();
  if (!before) GTEST_SKIP() << "this kernel counts no run delay";
  ASSERT_TRUE(after);
  EXPECT_GE(*after, *before);
}

TEST(RunDelay, ThreadsMayComeAndGo) {
  const auto run_delay = run_delay_reader();
  if (!run_delay()) GTEST_SKIP() << "this kernel counts no run delay";
  const auto files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = files();
  for (int i = 0; i < 100; ++i) {
    std::promise<void> end;
    std::thread thread([wait = end.get_future()] { wait.wait(); });
    EXPECT_TRUE(run_delay());
    end.set_value();
    thread.join();
    EXPECT_TRUE(run_delay());
  }
  EXPECT_LE(files(), before + 1);  // no file is kept of those that have ended
}

}  // namespace
}  // namespace berth::worker
