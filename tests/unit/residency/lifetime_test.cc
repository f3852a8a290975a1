#include <gtest/gtest.h>

#include <memory>

#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

TEST_F(ResidencyTest, ItsEndKillsItsWorkersAndTellsNobody) {
  const auto holder = served(demo_);
  const auto waiting = request(demo_);
  const auto loading = request(sim::make_model("other"));
  const auto answered = request(demo_, Duration::zero());
  residency_.reset();
  for (const auto& worker : world_.workers.all()) EXPECT_FALSE(worker->alive());
  world_.clock.advance(minutes(60));
  EXPECT_EQ(waiting->answers, 0);
  EXPECT_EQ(loading->answers, 0);
  EXPECT_EQ(answered->answers, 0);
  EXPECT_TRUE(holder->lease) << "and outlived it";
}

TEST_F(ResidencyTest, ItMayEndWithinTheAnswerOfItsShutdown) {
  served(demo_)->lease = {};
  bool done = false;
  residency_->shutdown(seconds(1), [&] {
    residency_.reset();
    done = true;
  });
  world_.clock.advance(seconds(30));
  EXPECT_TRUE(done);
}

TEST_F(ResidencyTest, ItMayEndWithinAProgressReport) {
  const auto first = request(demo_);
  const auto second = request(demo_);
  first->then_progress = [&] { residency_.reset(); };
  world_.clock.advance(seconds(30));
  EXPECT_TRUE(second->progress.empty());
  EXPECT_EQ(second->answers, 0);
}

TEST_F(ResidencyTest, AClaimMayOutliveIt) {
  auto client = request(demo_);
  residency_.reset();
  client.reset();
  world_.clock.settle();
}

TEST_F(ResidencyTest, ALeaseMayOutliveIt) {
  auto client = served(demo_);
  residency_.reset();
  client->lease = {};
  world_.clock.settle();
}

}  // namespace
}  // namespace berth::residency
