#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

class UnloadTest : public ResidencyTest {
 protected:
  using Outcome = std::optional<Result<UnloadOutcome>>;

  std::shared_ptr<Outcome> unload(bool force) {
    auto outcome = std::make_shared<Outcome>();
    residency_->unload("demo", force, [outcome](Result<UnloadOutcome> result) {
      EXPECT_FALSE(*outcome) << "answered twice";
      *outcome = std::move(result);
    });
    EXPECT_FALSE(*outcome) << "never from within the call";
    return outcome;
  }
  static Reason reason_of(const Outcome& outcome) {
    EXPECT_TRUE(outcome && !*outcome);
    return outcome && !*outcome ? outcome->error().reason : Reason::kInternal;
  }
};

TEST_F(UnloadTest, AnIdleModelIsUnloaded) {
  auto client = served(demo_);
  const std::string instance = client->lease.instance_id();
  client->lease = {};
  world_.clock.settle();
  const auto outcome = unload(false);
  world_.clock.settle();
  EXPECT_EQ(state(), "stopping");
  EXPECT_FALSE(*outcome) << "answers when the process is gone";
  world_.clock.advance(seconds(1));
  ASSERT_TRUE(*outcome && **outcome);
  EXPECT_EQ((**outcome)->instance_id, instance);
  EXPECT_EQ(core::to_string((**outcome)->exit), "exit 0");
  EXPECT_EQ((**outcome)->took, milliseconds(20));
  EXPECT_EQ(state(), "absent");
}

TEST_F(UnloadTest, WhatIsNotResidentIsNotFound) {
  const auto outcome = unload(false);
  world_.clock.settle();
  EXPECT_EQ(reason_of(*outcome), Reason::kNotFound);
}

// T19: an unload is refused while requests run or wait.
TEST_F(UnloadTest, T19_RefusedWhileRequestsRun) {
  const auto client = served(demo_);
  const auto outcome = unload(false);
  world_.clock.settle();
  EXPECT_EQ(reason_of(*outcome), Reason::kConflict);
  ASSERT_TRUE((*outcome)->error().extras && (*outcome)->error().extras->holder);
  EXPECT_EQ((*outcome)->error().extras->holder->state, "busy");
  EXPECT_NE((*outcome)->error().message.find("1 request runs on demo and 0 wait for it"),
            std::string::npos)
      << (*outcome)->error().message;
  EXPECT_EQ(state(), "busy");
}

TEST_F(UnloadTest, T19_RefusedWhileRequestsWait) {
  const auto client = request(demo_);
  world_.clock.advance(milliseconds(50));
  const auto outcome = unload(false);
  world_.clock.settle();
  EXPECT_EQ(reason_of(*outcome), Reason::kConflict);
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

// T19: a request that races an unload waits behind it and is served by the next instance.
TEST_F(UnloadTest, T19_ARequestDuringAnUnloadWaitsBehindIt) {
  served(demo_)->lease = {};
  world_.clock.settle();
  const auto outcome = unload(false);
  const auto client = request(demo_);
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
  EXPECT_TRUE(*outcome && **outcome);
  ASSERT_EQ(world_.workers.all().size(), 2U);
  EXPECT_TRUE(world_.workers.all().front()->reaped());
}

TEST_F(UnloadTest, T19_ATtlThatRacesARequestNeverLosesIt) {
  demo_->settings.ttl = seconds(5);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    sim::SimWorld world(seed);
    Residency residency(world.environment());
    TestClient first;
    first.claim =
        residency.acquire(demo_, RequestClass::kForeground, world.clock.now() + minutes(5), first);
    ASSERT_TRUE(world.clock.run_until([&] { return first.answers > 0; }, minutes(1)));
    first.lease = {};
    world.clock.settle();
    // The request comes in the very moment in which the ttl passes.
    TestClient second;
    const Timer timer = world.clock.sleep_for(seconds(5), [&] {
      second.claim = residency.acquire(demo_, RequestClass::kForeground,
                                       world.clock.now() + minutes(5), second);
    });
    world.clock.advance(minutes(1));
    EXPECT_TRUE(second.lease) << "seed " << seed;
  }
}

TEST_F(UnloadTest, ALoadThatNobodyWaitsForIsInterruptedWithoutAMark) {
  request(demo_).reset();
  world_.clock.advance(milliseconds(50));
  const auto outcome = unload(false);
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("load.interrupted"), 1U);
  EXPECT_TRUE(world_.workers.newest("demo")->killed());
  EXPECT_FALSE(world_.workers.newest("demo")->terminated());
  world_.clock.advance(seconds(1));
  ASSERT_TRUE(*outcome && **outcome);
  EXPECT_EQ(core::to_string((**outcome)->exit), "SIGKILL");
  EXPECT_EQ(world_.events.count("load.failed"), 0U);
  EXPECT_EQ(world_.store.load_records().begin()->second.outcome, "interrupted");
  EXPECT_TRUE(world_.store.load_records().begin()->second.failure_class.empty());
}

TEST_F(UnloadTest, ALoadWithoutAProcessYetIsInterruptedAtOnce) {
  request(demo_).reset();
  const auto outcome = unload(false);
  world_.clock.settle();
  ASSERT_TRUE(*outcome && **outcome);
  EXPECT_EQ(state(), "absent");
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(world_.workers.all().empty()) << "the prepared launch came too late (L1)";
}

TEST_F(UnloadTest, ByForceARunningRequestEndsWithItsReason) {
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  world_.clock.advance(milliseconds(15));
  const SteadyTime before = world_.clock.now();
  const auto outcome = unload(true);
  world_.clock.settle();
  EXPECT_EQ(world_.clock.now(), before);
  EXPECT_EQ(sink->ends, 1);
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
  EXPECT_EQ(state(), "draining");
  std::optional<Error> why;
  residency_->explain_break(client->lease.instance_id(), [&](Error error) { why = error; });
  world_.clock.settle();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, Reason::kConflict);
  EXPECT_THAT(why->message, HasSubstr("unloaded by force"));
  client->lease = {};
  world_.clock.settle();
  EXPECT_EQ(state(), "stopping") << "the work came back: no need to wait";
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(*outcome && **outcome);
}

TEST_F(UnloadTest, ByForceAGenerationThatStartsLateEndsToo) {
  const auto client = served(demo_);
  const auto outcome = unload(true);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  world_.clock.settle();
  EXPECT_EQ(sink->ends, 1);
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
}

TEST_F(UnloadTest, ByForceWaitingRequestsGetConflict) {
  const auto client = request(demo_);
  world_.clock.advance(milliseconds(50));
  const auto outcome = unload(true);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(client->failed_with(Reason::kConflict));
  EXPECT_TRUE(*outcome && **outcome);
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(UnloadTest, L3_AWorkerThatIgnoresSigtermIsKilledAfterTenSeconds) {
  sim::WorkerScript deaf;
  deaf.ignores_term = true;
  script(deaf);
  served(demo_)->lease = {};
  world_.clock.settle();
  const auto outcome = unload(false);
  world_.clock.advance(seconds(9));
  EXPECT_FALSE(world_.workers.newest("demo")->killed());
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(world_.workers.newest("demo")->killed());
  ASSERT_TRUE(*outcome && **outcome);
  EXPECT_EQ(core::to_string((**outcome)->exit), "SIGKILL");
}

TEST_F(UnloadTest, L3_AnUnkillableWorkerIsReportedAsStuck) {
  sim::WorkerScript unkillable;
  unkillable.ignores_term = true;
  unkillable.kill_to_exit = minutes(5);
  script(unkillable);
  served(demo_)->lease = {};
  world_.clock.settle();
  const auto outcome = unload(false);
  world_.clock.advance(seconds(16));
  EXPECT_EQ(reason_of(*outcome), Reason::kInternal);
  EXPECT_EQ(residency_->instances().at(0).state, "stuck");
  const auto again = unload(false);
  world_.clock.settle();
  EXPECT_EQ(reason_of(*again), Reason::kInternal);
}

TEST_F(UnloadTest, EveryCallThatWaitsIsAnswered) {
  served(demo_)->lease = {};
  world_.clock.settle();
  const auto first = unload(false);
  const auto second = unload(true);
  const auto third = unload(false);
  world_.clock.advance(seconds(1));
  for (const auto& outcome : {first, second, third}) EXPECT_TRUE(*outcome && **outcome);
}

}  // namespace
}  // namespace berth::residency
