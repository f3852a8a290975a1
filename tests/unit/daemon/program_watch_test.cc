#include "supervisor/program_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_world.h"
#include "tests/unit/process/temp_dir.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

// Real files under simulated time; the pool works when the test says so.
class ProgramWatchTest : public ::testing::Test {
 protected:
  ProgramWatchTest() { use_commands({"python"}); }
  // Each is run with the script of the same directory.
  void use_commands(const std::vector<std::string>& names) {
    std::vector<std::shared_ptr<const catalog::Model>> models = {sim::make_model("file")};
    for (const std::string& name : names) {
      const auto model = sim::make_model(name);
      model->settings.kind = catalog::Kind::kCommand;
      model->settings.command = {"/bin/sh", "server.py", "--port={port}"};
      model->settings.directory = dir_.path();
      models.push_back(model);
    }
    catalog_ = std::make_shared<const catalog::Catalog>(std::move(models));
  }
  void launch(const std::string& model, std::function<void()> done) {
    watch_.look_for_launch(**catalog_->find(model), std::move(done));
  }
  void write(const std::string& text) { std::ofstream(dir_.path() + "/server.py") << text; }
  void run_pool() {
    for (const auto& work : std::exchange(pool_, {})) work();
    clock_.settle();
  }
  void start() {
    watch_.start([] {});
    while (!pool_.empty()) run_pool();
    changes_ = 0;
  }

  testing::TempDir dir_;
  sim::SimClock clock_;
  std::shared_ptr<const catalog::Catalog> catalog_;
  std::vector<std::function<void()>> pool_;
  int ended_watches_ = 0;
  std::function<void()> readable_;
  int changes_ = 0;
  ProgramWatch watch_{
      {.clock = clock_,
       .run_alone = [this](std::function<void()> work) { pool_.push_back(std::move(work)); },
       .run_blocking =
           [this](const std::function<void()>& work) {
             ++ended_watches_;
             work();
           },
       .on_readable =
           [this](int, std::function<void()> callback) {
             readable_ = std::move(callback);
             return Timer();
           },
       .environment = {},
       .catalog = [this] { return catalog_; },
       .on_changed = [this] { ++changes_; }}};
};

TEST_F(ProgramWatchTest, L19_TheFirstLookIsWaitedFor) {
  bool done = false;
  watch_.start([&done] { done = true; });
  clock_.settle();
  EXPECT_FALSE(done);
  EXPECT_EQ(watch_.files_of("python"), nullptr);
  write("broken");
  run_pool();
  EXPECT_TRUE(done);
  ASSERT_NE(watch_.files_of("python"), nullptr);
  EXPECT_EQ(watch_.files_of("python")->size(), 2U);
  EXPECT_EQ(watch_.files_of("file"), nullptr);
}

TEST_F(ProgramWatchTest, L23_AFileSystemThatHangsKeepsNobodyWaiting) {
  int done = 0;
  watch_.start([&done] { ++done; });
  clock_.advance(ProgramWatch::kStartWait + 1s);
  EXPECT_EQ(done, 1);
  clock_.advance(5min);
  watch_.look();
  watch_.standing_met();
  EXPECT_EQ(pool_.size(), 1U) << "one look at a time";
  run_pool();
  EXPECT_EQ(done, 1);
  EXPECT_EQ(changes_, 1);
}

TEST_F(ProgramWatchTest, L23_AChangeThatNobodyReportsIsFoundByTheSweep) {
  start();
  clock_.advance(31s);
  run_pool();
  EXPECT_EQ(changes_, 0);
  write("mended");
  clock_.advance(31s);
  run_pool();
  EXPECT_EQ(changes_, 1);
}

TEST_F(ProgramWatchTest, L23_AChangeIsReported) {
  start();
  ASSERT_TRUE(readable_);
  write("mended");
  clock_.advance(2s);
  readable_();
  clock_.advance(100ms);
  EXPECT_EQ(pool_.size(), 1U);
  run_pool();
  EXPECT_EQ(changes_, 1);
}

TEST_F(ProgramWatchTest, L23_AProgramThatWritesAllTheTimeIsLookedAtOnceASecond) {
  start();
  int looks = 0;
  for (int write_count = 0; write_count < 300; ++write_count) {
    write("x");
    readable_();
    clock_.advance(10ms);
    looks += static_cast<int>(pool_.size());
    run_pool();
  }
  EXPECT_GE(looks, 2);
  EXPECT_LE(looks, 4);
  EXPECT_EQ(ended_watches_, looks) << "each on the pool, as that takes the kernel a while";
}

TEST_F(ProgramWatchTest, L23_AFileSystemThatHangsEndsTheWatchOfItsOwnModelAlone) {
  use_commands({"a", "b", "c", "d", "e", "well"});
  write("broken");
  int done = 0;
  watch_.start([&done] { ++done; });
  ASSERT_EQ(pool_.size(), 4U) << "few threads at once";
  const auto hung = std::exchange(pool_, {});
  clock_.advance(ProgramWatch::kStartWait + 1s);
  EXPECT_EQ(done, 1);
  ASSERT_EQ(pool_.size(), 2U) << "late ones give their turn away";
  run_pool();
  EXPECT_NE(watch_.files_of("well"), nullptr);
  EXPECT_EQ(watch_.files_of("a"), nullptr);
  changes_ = 0;
  for (int change = 1; change < 4; ++change) {
    write(std::string(static_cast<std::size_t>(change), 'x'));
    clock_.advance(2s);
    watch_.standing_met();
    EXPECT_EQ(pool_.size(), 2U) << "no second look at what hangs";
    run_pool();
    EXPECT_EQ(changes_, 2 * change);
  }
  for (const auto& work : hung) work();
  clock_.settle();
  EXPECT_NE(watch_.files_of("a"), nullptr);
}

TEST_F(ProgramWatchTest, L23_AModelThatIsGoneIsForgotten) {
  start();
  use_commands({});
  watch_.look();
  EXPECT_EQ(watch_.files_of("python"), nullptr);
  EXPECT_EQ(ended_watches_, 1);
  EXPECT_TRUE(pool_.empty());
}

TEST_F(ProgramWatchTest, L22_RefusedRequestsAskForALookOnceASecond) {
  start();
  clock_.advance(2s);
  for (int request = 0; request < 100; ++request) watch_.standing_met();
  EXPECT_EQ(pool_.size(), 1U);
  run_pool();
  watch_.standing_met();
  EXPECT_TRUE(pool_.empty());
  clock_.advance(1s);
  watch_.standing_met();
  EXPECT_EQ(pool_.size(), 1U);
}

TEST_F(ProgramWatchTest, L19_ALaunchLooksAnew) {
  start();
  watch_.look();
  const auto older = std::exchange(pool_, {});
  write("mended");
  bool done = false;
  watch_.look_for_launch(**catalog_->find("python"), [&done] { done = true; });
  EXPECT_FALSE(done);
  clock_.advance(10ms);
  run_pool();
  EXPECT_TRUE(done);
  ASSERT_EQ(watch_.files_of("python")->size(), 2U);
  EXPECT_EQ(watch_.files_of("python")->back().size, 6U);
  for (const auto& work : older) work();
  clock_.settle();
  EXPECT_EQ(changes_, 0) << "what the launch saw is what its failure is about";
}

TEST_F(ProgramWatchTest, L19_L23_WhatALaunchCouldNotSeeIsNotKnown) {
  start();
  clock_.advance(1ms);
  int done = 0;
  launch("python", [&done] { ++done; });
  clock_.advance(ProgramWatch::kLaunchWait + 1ms);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(watch_.files_of("python"), nullptr) << "it may be another program than before";
  launch("python", [&done] { ++done; });
  EXPECT_EQ(done, 1) << "never from within the call";
  clock_.settle();
  EXPECT_EQ(done, 2) << "its file system hangs";
  EXPECT_EQ(pool_.size(), 1U);
  run_pool();
  EXPECT_EQ(done, 2);
  EXPECT_NE(watch_.files_of("python"), nullptr);
  EXPECT_EQ(changes_, 1) << "what came late is told";
}

TEST_F(ProgramWatchTest, L19_ALaunchDuringTheLookOfAnEarlierLooksAnew) {
  start();
  int older = 0;
  int newer = 0;
  launch("python", [&older] { ++older; });
  const auto first = std::exchange(pool_, {});
  launch("python", [&newer] { ++newer; });
  for (const auto& work : first) work();
  write("written in between");
  clock_.settle();
  EXPECT_EQ(older, 1);
  EXPECT_EQ(newer, 0);
  clock_.advance(1ms);
  run_pool();
  EXPECT_EQ(newer, 1);
  EXPECT_EQ(watch_.files_of("python")->size(), 2U);
}

TEST_F(ProgramWatchTest, L23_LaunchesOnFileSystemsThatHangHoldUpNoOther) {
  use_commands({"a", "b", "c", "d", "e", "well"});
  start();
  int done = 0;
  for (const char* model : {"a", "b", "c", "d", "e"}) launch(model, [&done] { ++done; });
  EXPECT_EQ(pool_.size(), 4U);
  clock_.advance(2s);
  EXPECT_EQ(done, 5);
  pool_.clear();
  bool well = false;
  launch("well", [&well] { well = true; });
  EXPECT_EQ(pool_.size(), 1U);
  run_pool();
  EXPECT_TRUE(well);
  EXPECT_NE(watch_.files_of("well"), nullptr);
}

}  // namespace
}  // namespace berth
