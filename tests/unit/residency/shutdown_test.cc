#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

class ShutdownTest : public ResidencyTest {
 protected:
  void shut_down(Duration drain) {
    residency_->shutdown(drain, [this] { ++done_; });
    EXPECT_EQ(done_, 0) << "never from within the call";
  }
  int done_ = 0;
};

TEST_F(ShutdownTest, L29_WithoutAnInstanceItIsOverAtOnce) {
  shut_down(seconds(30));
  world_.clock.settle();
  EXPECT_EQ(done_, 1);
}

TEST_F(ShutdownTest, L29_NewAndWaitingWorkIsRefused) {
  const auto waiting = request(demo_);
  world_.clock.advance(milliseconds(50));
  shut_down(seconds(30));
  const auto late = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(waiting->failed_with(Reason::kShuttingDown));
  EXPECT_TRUE(late->failed_with(Reason::kShuttingDown));
  EXPECT_EQ(world_.events.count("load.interrupted"), 1U);
  world_.clock.advance(seconds(1));
  EXPECT_EQ(done_, 1);
}

TEST_F(ShutdownTest, L29_StreamsAreFinished) {
  auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  shut_down(seconds(30));
  world_.clock.settle();
  EXPECT_EQ(state(), "closing");
  ASSERT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, seconds(30)));
  EXPECT_TRUE(sink->end->has_value());
  client->lease = {};
  world_.clock.advance(seconds(1));
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(world_.store.process_records().empty());
}

TEST_F(ShutdownTest, L29_WhatIsNotFinishedInTimeIsEnded) {
  sim::WorkerScript slow;
  slow.token_every = minutes(1);
  script(slow);
  auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(10), sink);
  const SteadyTime start = world_.clock.now();
  shut_down(seconds(30));
  ASSERT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, minutes(2)));
  EXPECT_EQ(world_.clock.now() - start, seconds(30));
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
  std::optional<Error> why;
  residency_->explain_break(client->lease.instance_id(), [&](Error error) { why = error; });
  world_.clock.settle();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, Reason::kShuttingDown);
  // The client keeps its lease: nobody waits for it beyond the ladder.
  world_.clock.advance(seconds(1));
  EXPECT_EQ(done_, 1);
}

TEST_F(ShutdownTest, L2_AStuckProcessDoesNotKeepItFromEnding) {
  sim::WorkerScript unkillable;
  unkillable.ignores_term = true;
  unkillable.kill_to_exit = minutes(60);
  script(unkillable);
  served(demo_)->lease = {};
  world_.clock.settle();
  shut_down(seconds(30));
  world_.clock.advance(seconds(15));
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(world_.store.process_records().size(), 1U) << "the next start looks for it (L4)";
}

TEST_F(ShutdownTest, L29_ASecondCallShortensTheFirst) {
  sim::WorkerScript slow;
  slow.token_every = minutes(1);
  script(slow);
  const auto client = served(demo_);
  shut_down(seconds(30));
  world_.clock.advance(seconds(1));
  EXPECT_EQ(done_, 0);
  residency_->shutdown(Duration::zero(), [this] { ++done_; });
  world_.clock.advance(seconds(2));
  EXPECT_EQ(done_, 2);
}

TEST_F(ShutdownTest, L29_AWaitForTheBackOffEndsToo) {
  served(demo_)->lease = {};
  world_.clock.settle();
  world_.workers.newest("demo")->die(core::Exited{1});
  world_.clock.settle();
  const auto client = request(demo_);
  shut_down(seconds(30));
  world_.clock.advance(minutes(1));
  EXPECT_TRUE(client->failed_with(Reason::kShuttingDown));
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

}  // namespace
}  // namespace berth::residency
