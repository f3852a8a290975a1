#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DeathTest : public ResidencyTest {
 protected:
  Error explain(const std::string& instance) {
    std::vector<Error> answers;
    residency_->explain_break(instance, [&](Error error) { answers.push_back(std::move(error)); });
    EXPECT_TRUE(answers.empty()) << "never from within the call";
    EXPECT_TRUE(world_.clock.run_until([&] { return !answers.empty(); }, seconds(2)));
    world_.clock.advance(seconds(2));
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? Error{} : answers.front();
  }
  void kill_worker() { world_.workers.newest("demo")->die(core::Signalled{SIGSEGV, false}); }
};

// T72: a crash ends in an error event for what is in flight, with its cause; the service goes on.
TEST_F(DeathTest, T72_ACrashFailsWhatIsInFlightAtOnceAndNothingElse) {
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  world_.clock.advance(milliseconds(15));
  const SteadyTime before = world_.clock.now();
  kill_worker();
  world_.clock.settle();
  EXPECT_EQ(sink->ends, 1);
  ASSERT_FALSE(sink->end->has_value());
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
  EXPECT_EQ(world_.clock.now(), before);
  const Error why = explain(client->lease.instance_id());
  EXPECT_EQ(why.reason, Reason::kWorkerDied);
  EXPECT_EQ(why.message, "The worker of demo ended: SIGSEGV. The next request starts it again.");
  EXPECT_EQ(why.extras->failure->signal, "SIGSEGV");
  EXPECT_THAT(instance_events(),
              ElementsAre("load.started", "load.ready", "instance.died", "instance.exited"));
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(DeathTest, L9_TheNextRequestReloadsAfterTheBackOff) {
  served(demo_)->lease = {};
  world_.clock.settle();
  kill_worker();
  world_.clock.settle();
  const SteadyTime died = world_.clock.now();
  EXPECT_EQ(state(), "absent");
  world_.clock.advance(milliseconds(300));
  const auto client = request(demo_);
  world_.clock.settle();
  ASSERT_FALSE(client->progress.empty());
  EXPECT_EQ(client->progress.front().phase, "back_off");
  EXPECT_EQ(client->progress.front().eta, milliseconds(700));
  ASSERT_TRUE(world_.clock.run_until([&] { return state() == "starting"; }, minutes(1)));
  EXPECT_EQ(world_.clock.now() - died, seconds(1));
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

TEST_F(DeathTest, L9_NobodyIsRestartedWithoutARequest) {
  served(demo_)->lease = {};
  world_.clock.settle();
  kill_worker();
  world_.clock.advance(minutes(10));
  EXPECT_EQ(state(), "absent");
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(DeathTest, L9_AWaiterWhoGoesDuringTheBackOffStartsNothing) {
  served(demo_)->lease = {};
  world_.clock.settle();
  kill_worker();
  world_.clock.settle();
  auto client = request(demo_);
  world_.clock.settle();
  client.reset();
  world_.clock.advance(minutes(1));
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(DeathTest, L9_TheBackOffDoubles) {
  std::vector<Duration> waits;
  for (int death = 0; death < 7; ++death) {
    served(demo_)->lease = {};
    world_.clock.advance(seconds(61));  // three deaths within two minutes are a failure
    kill_worker();
    world_.clock.settle();
    const SteadyTime died = world_.clock.now();
    const auto next = request(demo_);
    EXPECT_TRUE(world_.clock.run_until([&] { return state() == "starting"; }, minutes(1)));
    waits.push_back(world_.clock.now() - died);
  }
  EXPECT_THAT(waits, ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(16),
                                 seconds(30), seconds(30)));
}

TEST_F(DeathTest, L9_RequestsThatWaitedForAPlaceWaitForTheReload) {
  sim::WorkerScript one;
  one.sequences = 1;
  script(one);
  const auto holder = served(demo_);
  const auto waiting = request(demo_);
  world_.clock.advance(seconds(1));
  kill_worker();
  run_until_answered(*waiting);
  EXPECT_TRUE(waiting->lease);
  EXPECT_NE(waiting->lease.instance_id(), holder->lease.instance_id());
}

TEST_F(DeathTest, L9_ALeaseOnADeadInstanceIsCountedNowhere) {
  auto holder = served(demo_);
  kill_worker();
  world_.clock.advance(seconds(1));
  const auto next = served(demo_);
  holder->lease = {};
  world_.clock.settle();
  EXPECT_EQ(residency_->instances().at(0).active, 1U);
}

TEST_F(DeathTest, L9_ABreakIsExplainedByTheExitThatFollows) {
  sim::WorkerScript late;
  late.exit_to_notice = milliseconds(200);
  script(late);
  const auto client = served(demo_);
  kill_worker();
  world_.clock.settle();
  EXPECT_EQ(state(), "busy") << "the exit has not been seen yet";
  EXPECT_THAT(explain(client->lease.instance_id()).message, HasSubstr("SIGSEGV"));
}

TEST_F(DeathTest, L9_ABreakWithoutAnExitIsExplainedAfterASecond) {
  const auto client = served(demo_);
  const SteadyTime asked = world_.clock.now();
  std::optional<Error> why;
  residency_->explain_break(client->lease.instance_id(), [&](Error error) { why = error; });
  ASSERT_TRUE(world_.clock.run_until([&] { return why.has_value(); }, seconds(5)));
  EXPECT_EQ(world_.clock.now() - asked, seconds(1));
  EXPECT_EQ(why->reason, Reason::kWorkerDied);
  EXPECT_THAT(why->message, HasSubstr("connection"));
}

TEST_F(DeathTest, L9_AnEndIsExplainedLongAfter) {
  auto client = served(demo_);
  const std::string instance = client->lease.instance_id();
  kill_worker();
  client->lease = {};
  world_.clock.advance(minutes(5));
  EXPECT_THAT(explain(instance).message, HasSubstr("SIGSEGV"));
}

TEST_F(DeathTest, L9_AnUnknownInstanceIsExplainedToo) {
  EXPECT_EQ(explain("nonsense").reason, Reason::kWorkerDied);
  EXPECT_EQ(explain("01977430-1ec8-7002-8000-000000000099").reason, Reason::kWorkerDied);
}

TEST_F(DeathTest, L9_AWorkerThatDropsItsStreamAndLivesIsReplaced) {
  const auto client = served(demo_);
  world_.workers.newest("demo")->disconnect_stream();
  world_.clock.advance(seconds(7));
  EXPECT_EQ(state(), "absent");
  EXPECT_TRUE(world_.workers.newest("demo")->terminated());
  EXPECT_EQ(explain(client->lease.instance_id()).reason, Reason::kWorkerDied);
  EXPECT_TRUE(served(demo_)->lease);
}

}  // namespace
}  // namespace berth::residency
