#include "supervisor/leftover_cleaner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/sim_world.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

constexpr const char* kBoot = "boot-1";
constexpr std::uint64_t kOurStart = 1000;

// A store that answers about processes when the test says so.
class SlowStore : public sim::SimStore {
 public:
  using SimStore::SimStore;
  void processes(std::function<void(Result<std::vector<store::ProcessRecord>>)> done) override {
    asked = std::move(done);
  }
  std::function<void(Result<std::vector<store::ProcessRecord>>)> asked;
};

class LeftoverCleanerTest : public ::testing::Test {
 protected:
  static std::vector<store::ProcessRecord> records() {
    return {{"old", "demo", 11, kOurStart - 1, kBoot},
            {"older", "demo", 12, kOurStart + 5, "boot-0"},
            {"ours", "demo", 13, kOurStart + 7, kBoot}};
  }

  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  SlowStore store_{clock_};
  std::vector<pid_t> killed_;
  int marked_ = 0;
  int done_ = 0;
  LeftoverCleaner cleaner_{
      {.clock = clock_,
       .events = events_,
       .store = store_,
       .run_blocking = [this](std::function<void()> work) { clock_.post(std::move(work)); },
       .boot_id = kBoot,
       .start_ticks = kOurStart,
       .kill =
           [this](const std::vector<process::Leftover>& leftovers) {
             for (const process::Leftover& one : leftovers) killed_.push_back(one.pid);
             return std::vector<process::LeftoverEnd>(leftovers.size(),
                                                      process::LeftoverEnd::kKilled);
           },
       .kill_marked =
           [this] {
             ++marked_;
             return std::vector<process::MarkedLeftover>();
           }}};
};

TEST_F(LeftoverCleanerTest, L4_WhatIsRecordedIsEndedBeforeTheStart) {
  for (const store::ProcessRecord& record : records()) store_.put_process(record);
  cleaner_.start([this] { ++done_; });
  clock_.advance(1s);
  EXPECT_EQ(done_, 0);
  store_.asked(records());
  clock_.settle();
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(killed_, (std::vector<pid_t>{11, 12, 13}));
  EXPECT_EQ(marked_, 1);
  EXPECT_EQ(events_.count("leftover.killed"), 3U);
  EXPECT_TRUE(store_.process_records().empty());
  clock_.advance(1min);
  EXPECT_EQ(events_.count("server.degraded"), 0U);
}

TEST_F(LeftoverCleanerTest, L4_AStoreThatDoesNotAnswerHoldsTheStartUpForFiveSeconds) {
  cleaner_.start([this] { ++done_; });
  clock_.advance(6s);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(marked_, 1);
  EXPECT_EQ(events_.count("server.degraded"), 1U);
}

TEST_F(LeftoverCleanerTest, L4_WhatIsReadLateEndsNothingOfThisRun) {
  for (const store::ProcessRecord& record : records()) store_.put_process(record);
  cleaner_.start([this] { ++done_; });
  clock_.advance(6s);
  store_.asked(records());
  clock_.settle();
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(killed_, (std::vector<pid_t>{11, 12}));
  EXPECT_EQ(marked_, 1) << "by its mark a worker of this run would be found";
  ASSERT_EQ(store_.process_records().size(), 1U);
  EXPECT_EQ(store_.process_records().begin()->first, "ours");
}

TEST_F(LeftoverCleanerTest, L4_AReadThatFailsIsToldAndTheStartGoesOn) {
  cleaner_.start([this] { ++done_; });
  store_.asked(fail(Reason::kStoreUnavailable, "It is damaged."));
  clock_.advance(6s);
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(marked_, 1);
  EXPECT_EQ(events_.count("server.degraded"), 1U);
}

}  // namespace
}  // namespace berth
