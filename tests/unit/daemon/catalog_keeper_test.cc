#include "supervisor/catalog_keeper.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"

namespace berth {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

// Real files under simulated time. inotify is never readable here, as on a network file system, so
// that what is found is found by the sweep.
class CatalogKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/berth-keeper-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    root_ = pattern;
    catalog::Config config;
    config.model_dirs = {root_.string()};
    keeper_ = std::make_unique<CatalogKeeper>(CatalogKeeper::Parts{
        .clock = clock_,
        .events = events_,
        .config = std::make_shared<const catalog::Config>(std::move(config)),
        .run_blocking = [this](std::function<void()> work) { clock_.post(std::move(work)); },
        .on_readable = [](int, std::function<void()>) { return Timer(); }});
  }
  void TearDown() override {
    keeper_.reset();
    fs::remove_all(root_);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
  }

  fs::path root_;
  sim::SimClock clock_;
  sim::SimEvents events_{clock_};
  std::unique_ptr<CatalogKeeper> keeper_;
};

TEST_F(CatalogKeeperTest, TheFirstScanIsAnnounced) {
  write("broken.gguf", "junk");
  bool done = false;
  EXPECT_TRUE(keeper_->snapshot()->models().empty());
  keeper_->start([&] { done = true; });
  clock_.settle();
  EXPECT_TRUE(done);
  EXPECT_EQ(keeper_->snapshot()->models().size(), 1U);
  EXPECT_EQ(events_.count("catalog.scanned"), 1U);
  EXPECT_EQ(events_.count("model.broken"), 1U);
}

TEST_F(CatalogKeeperTest, L23_AChangeThatNobodyReportsIsFoundByTheSweep) {
  keeper_->start([] {});
  clock_.settle();
  write("late.gguf", "junk");
  clock_.advance(31s);
  EXPECT_EQ(keeper_->snapshot()->models().size(), 1U);
  clock_.advance(5min);
  EXPECT_EQ(events_.count("catalog.scanned"), 2U) << "nothing changed any more";
  EXPECT_EQ(events_.count("model.broken"), 1U);
}

TEST_F(CatalogKeeperTest, BrokenModelsAreToldOnce) {
  write("broken.gguf", "junk");
  keeper_->start([] {});
  clock_.settle();
  keeper_->rescan();
  keeper_->rescan();
  clock_.settle();
  EXPECT_EQ(events_.count("model.broken"), 1U);
  EXPECT_GE(events_.count("catalog.scanned"), 2U);
}

}  // namespace
}  // namespace berth
