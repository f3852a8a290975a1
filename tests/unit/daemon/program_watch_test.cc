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
  ProgramWatchTest() {
    const auto model = sim::make_model("python");
    model->settings.kind = catalog::Kind::kCommand;
    model->settings.command = {"/bin/sh", "server.py", "--port={port}"};
    model->settings.directory = dir_.path();
    catalog_ = std::make_shared<const catalog::Catalog>(
        std::vector<std::shared_ptr<const catalog::Model>>{model, sim::make_model("file")});
  }
  void write(const std::string& text) { std::ofstream(dir_.path() + "/server.py") << text; }
  void run_pool() {
    for (const auto& work : std::exchange(pool_, {})) work();
    clock_.settle();
  }
  void start() {
    watch_.start([] {});
    run_pool();
    changes_ = 0;
  }

  testing::TempDir dir_;
  sim::SimClock clock_;
  std::shared_ptr<const catalog::Catalog> catalog_;
  std::vector<std::function<void()>> pool_;
  std::function<void()> readable_;
  int changes_ = 0;
  ProgramWatch watch_{
      {.clock = clock_,
       .run_alone = [this](std::function<void()> work) { pool_.push_back(std::move(work)); },
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
  readable_();
  clock_.advance(100ms);
  run_pool();
  EXPECT_EQ(changes_, 1);
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

TEST_F(ProgramWatchTest, L23_ALaunchWaitsForAFileSystemThatHangsOnlyAMoment) {
  start();
  int done = 0;
  for (int launch = 0; launch < 9; ++launch) {
    watch_.look_for_launch(**catalog_->find("python"), [&done] { ++done; });
  }
  EXPECT_EQ(pool_.size(), 4U);
  clock_.advance(2s);
  EXPECT_EQ(done, 9);
  run_pool();
  EXPECT_EQ(done, 9);
}

}  // namespace
}  // namespace berth
