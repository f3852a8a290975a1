#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::ElementsAre;
using testing::Gt;

TEST_F(ResidencyTest, L6_ALeaseComesWhenTheWorkerIsReady) {
  EXPECT_EQ(state(), "absent");
  const auto client = request(demo_);
  EXPECT_EQ(state(), "starting");
  run_until_answered(*client);
  ASSERT_TRUE(client->lease);
  EXPECT_EQ(state(), "busy");
  EXPECT_EQ(client->lease.window(), 4096U);
  EXPECT_EQ(client->lease.longest_token_bytes(), 16U);
  EXPECT_TRUE(world_.workers.newest("demo")->ready());
  EXPECT_THAT(instance_events(), ElementsAre("load.started", "load.ready"));
}

TEST_F(ResidencyTest, L6_ALeaseServes) {
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  ASSERT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, minutes(1)));
  EXPECT_EQ(sink->text, "Hello, world.");
  EXPECT_TRUE(sink->end->has_value());
}

TEST_F(ResidencyTest, L6_AReadyInstanceAnswersWithoutWaiting) {
  served(demo_)->lease = {};
  world_.clock.settle();
  EXPECT_EQ(state(), "ready");
  const SteadyTime before = world_.clock.now();
  const auto client = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(client->lease);
  EXPECT_EQ(world_.clock.now(), before);
  EXPECT_TRUE(client->progress.empty());
}

TEST_F(ResidencyTest, L5_SimultaneousRequestsMakeOneLoad) {
  sim::WorkerScript four;
  four.sequences = 4;
  script(four);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(request(demo_));
  for (const auto& client : clients) run_until_answered(*client);
  for (const auto& client : clients) EXPECT_TRUE(client->lease);
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(ResidencyTest, T23_SameModelLoadsOnce) {
  const auto first = request(demo_);
  world_.clock.advance(milliseconds(5));
  const auto second = request(demo_);
  world_.clock.advance(milliseconds(50));
  const auto third = request(demo_, minutes(5), RequestClass::kIdle);
  run_until_answered(*first);
  run_until_answered(*second);
  EXPECT_EQ(world_.workers.all().size(), 1U);
  EXPECT_EQ(world_.events.count("load.started"), 1U);
}

TEST_F(ResidencyTest, L5_AHangUpLeavesTheLoadRunning) {
  auto client = request(demo_);
  world_.clock.advance(milliseconds(50));
  EXPECT_EQ(state(), "loading");
  client.reset();
  world_.clock.advance(seconds(5));
  EXPECT_EQ(state(), "ready");
  EXPECT_EQ(world_.events.count("load.interrupted"), 0U);
}

// T29: a client with a time-out of 15 s converges by retrying, because its loads are not its own.
TEST_F(ResidencyTest, T29_AClientWithAShortTimeoutConverges) {
  sim::WorkerScript slow;
  slow.load = seconds(40);
  script(slow);
  int tries = 0;
  std::unique_ptr<TestClient> client;
  do {
    ASSERT_LT(++tries, 4);
    client = request(demo_, seconds(15));
    run_until_answered(*client);
  } while (client->failed_with(Reason::kDeadline));
  EXPECT_TRUE(client->lease);
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

// T20: a load grants its place to the request that waited for it, before anything can unload it.
TEST_F(ResidencyTest, T20_AWaitingRequestHasItsLeaseWhenTheLoadIsReady) {
  demo_->settings.ttl = milliseconds(1);
  const auto client = request(demo_);
  ASSERT_TRUE(
      world_.clock.run_until([&] { return world_.events.count("load.ready") > 0; }, minutes(1)));
  EXPECT_EQ(residency_->instances().at(0).active, 1U);
  run_until_answered(*client);
  world_.clock.advance(minutes(10));
  EXPECT_EQ(state(), "busy");
}

TEST_F(ResidencyTest, ProgressIsThatOfTheWholeLoad) {
  const auto client = request(demo_);
  run_until_answered(*client);
  ASSERT_GT(client->progress.size(), 3U);
  EXPECT_EQ(client->progress.front().phase, "starting");
  EXPECT_EQ(client->progress.back().phase, "weights");
  EXPECT_GT(client->progress.back().fraction, 0.5F);
  EXPECT_TRUE(client->progress.back().eta);
  for (std::size_t i = 1; i < client->progress.size(); ++i) {
    EXPECT_GE(client->progress[i].fraction, client->progress[i - 1].fraction);
    EXPECT_FALSE(client->progress[i].queue_position);
  }
}

TEST_F(ResidencyTest, TheLastLoadsTimeGivesAnEtaFromTheStart) {
  store::LoadRecord last;
  last.id = "01900000-0000-7000-8000-000000000001";
  last.model = "demo";
  last.ready = WallTime(seconds(1));
  last.load_ms = 60'000;
  world_.store.put_load(last);
  const auto client = request(demo_);
  world_.clock.advance(milliseconds(5));
  ASSERT_EQ(residency_->instances().size(), 1U);
  const auto loading = residency_->instances().front().loading;
  ASSERT_TRUE(loading && loading->eta);
  EXPECT_THAT(loading->eta->count(), Gt(59'000));
}

TEST_F(ResidencyTest, ASnapshotSaysWhatPeopleAskFor) {
  const auto client = served(demo_);
  const auto waiting = served(demo_);
  const auto third = request(demo_);
  world_.clock.settle();
  const InstanceSnapshot snapshot = residency_->instances().at(0);
  EXPECT_EQ(snapshot.id, client->lease.instance_id());
  EXPECT_EQ(snapshot.model, "demo");
  EXPECT_EQ(snapshot.state, "busy");
  EXPECT_EQ(snapshot.pid, 1000);
  EXPECT_EQ(snapshot.sequences, 2U);
  EXPECT_EQ(snapshot.active, 2U);
  EXPECT_EQ(snapshot.waiting, 1U);
  EXPECT_EQ(snapshot.weights_bytes, 1000U);
  EXPECT_FALSE(snapshot.ttl);
  EXPECT_FALSE(snapshot.loading);
  EXPECT_EQ(snapshot.command.front(), "berth-worker");
}

TEST_F(ResidencyTest, TheStoreKeepsLoadsAndLivingProcesses) {
  const auto client = served(demo_);
  const std::string id = client->lease.instance_id();
  EXPECT_EQ(world_.store.load_records().at(id).outcome, "ready");
  EXPECT_GT(world_.store.load_records().at(id).load_ms, 0);
  const store::ProcessRecord process = world_.store.process_records().at(id);
  EXPECT_EQ(process.pid, 1000);
  EXPECT_EQ(process.start_ticks, 100'000U);
  EXPECT_FALSE(process.boot_id.empty());
  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(world_.store.process_records().empty());
  EXPECT_EQ(world_.store.load_records().at(id).outcome, "stopped");
  EXPECT_EQ(world_.store.load_records().at(id).exit, "exit 0");
}

TEST_F(ResidencyTest, M15_AnIdleModelIsUnloadedAfterItsTtl) {
  auto client = served(demo_);
  world_.clock.advance(minutes(40));
  EXPECT_EQ(state(), "busy");
  client->lease = {};
  world_.clock.advance(minutes(29));
  EXPECT_EQ(state(), "ready");
  const auto left = residency_->instances().at(0).ttl;
  ASSERT_TRUE(left);
  EXPECT_EQ(*left, minutes(1));
  world_.clock.advance(minutes(1) + seconds(1));
  EXPECT_EQ(state(), "absent");
  const Event* const stopping = world_.events.last("instance.stopping");
  ASSERT_NE(stopping, nullptr);
  EXPECT_EQ(sim::SimEvents::field(*stopping, "cause"), "idle");
}

TEST_F(ResidencyTest, M15_IdleWorkKeepsNothingAlive) {
  served(demo_)->lease = {};
  world_.clock.advance(minutes(29));
  auto idle = request(demo_, minutes(1), RequestClass::kIdle);
  world_.clock.settle();
  ASSERT_TRUE(idle->lease);
  idle->lease = {};
  world_.clock.advance(minutes(1) + seconds(1));
  EXPECT_EQ(state(), "absent");
}

TEST_F(ResidencyTest, M15_LookingAtItKeepsNothingAlive) {
  served(demo_)->lease = {};
  for (int second = 0; second < 30 * 60 + 2; ++second) {
    std::ignore = residency_->instances();
    std::ignore = residency_->state_of("demo");
    world_.clock.advance(seconds(1));
  }
  EXPECT_EQ(state(), "absent");
}

TEST_F(ResidencyTest, M15_ASuspendedMachineAges) {
  served(demo_)->lease = {};
  world_.clock.advance(seconds(1));
  world_.clock.suspend(minutes(60));
  world_.clock.advance(minutes(1) + seconds(1));
  EXPECT_EQ(state(), "absent");
}

TEST_F(ResidencyTest, M15_ZeroIsNever) {
  demo_->settings.ttl = Duration::zero();
  served(demo_)->lease = {};
  world_.clock.advance(minutes(60) * 48);
  EXPECT_EQ(state(), "ready");
}

TEST_F(ResidencyTest, M16_APinnedModelIsNotUnloadedForIdleness) {
  world_.configured_pins = {demo_};
  residency_->catalog_changed();
  served(demo_)->lease = {};
  world_.clock.advance(minutes(60));
  EXPECT_EQ(state(), "ready");
}

// T22: concurrent cold starts of several models, some of which cannot load, all come to an end.
TEST_F(ResidencyTest, T22_EveryColdStartEndsInReadyOrFailed) {
  world_.workers.set_script([](const std::string& model) {
    sim::WorkerScript script;
    if (model == "broken") script.fate = sim::Fate::kSaysLoadFailed;
    if (model == "crashes") script.fate = sim::Fate::kExitsLoading;
    return script;
  });
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int round = 0; round < 3; ++round) {
    for (const char* name : {"demo", "broken", "crashes", "other"}) {
      clients.push_back(request(sim::make_model(name)));
    }
  }
  for (const auto& client : clients) {
    client->then = [&client] { client->lease = {}; };
  }
  world_.clock.advance(seconds(30));
  for (const auto& client : clients) EXPECT_EQ(client->answers, 1);
  EXPECT_EQ(residency_->state_of("demo"), "ready");
  EXPECT_EQ(residency_->state_of("other"), "ready");
  EXPECT_EQ(residency_->state_of("broken"), "absent");
  EXPECT_EQ(residency_->state_of("crashes"), "absent");
}

// T9, L25: a failed load of one model leaves the others loadable and resident.
TEST_F(ResidencyTest, T9_AFailureOfOneModelLeavesTheOthersAlone) {
  const auto resident = served(demo_);
  world_.workers.set_script([](const std::string& model) {
    sim::WorkerScript script;
    if (model == "broken") script.fate = sim::Fate::kLaunchError;
    return script;
  });
  const auto broken = request(sim::make_model("broken"));
  run_until_answered(*broken);
  EXPECT_TRUE(broken->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(state(), "busy");
  EXPECT_TRUE(served(sim::make_model("other"))->lease);
}

}  // namespace
}  // namespace berth::residency
