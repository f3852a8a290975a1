#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StallGuardTest : public ResidencyTest {
 protected:
  Error explain(const std::string& instance) {
    std::vector<Error> answers;
    residency_->explain_break(instance, [&](Error error) { answers.push_back(std::move(error)); });
    world_.clock.settle();
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? Error{} : answers.front();
  }
};

TEST_F(StallGuardTest, L8_ALoadInWhichNothingMovesFailsAsStalled) {
  script({.fate = sim::Fate::kNeverReady, .computes = false});
  const auto client = request(demo_);
  run_until_answered(*client);
  ASSERT_TRUE(client->error);
  EXPECT_EQ(client->error->reason, Reason::kLoadFailed);
  EXPECT_EQ(client->error->extras->failure->failure_class, "stalled");
  EXPECT_THAT(client->error->extras->failure->reason,
              HasSubstr("nothing moved for 1 min; last was its own progress, 1 min ago"));
  const auto took = world_.clock.now() - world_.workers.newest("demo")->killed().value();
  EXPECT_LE(took, seconds(2));
  EXPECT_THAT(instance_events(),
              testing::IsSupersetOf({"load.started", "instance.stopping", "load.failed"}));
  world_.clock.advance(seconds(10));
  EXPECT_EQ(state(), "absent");
}

TEST_F(StallGuardTest, L8_AWorkerThatNeverListensStallsToo) {
  script({.fate = sim::Fate::kNeverListens, .computes = false});
  const auto client = request(demo_);
  run_until_answered(*client);
  ASSERT_TRUE(client->error);
  EXPECT_EQ(client->error->extras->failure->failure_class, "stalled");
  EXPECT_THAT(client->error->extras->failure->reason, HasSubstr("since its start"));
}

TEST_F(StallGuardTest, L8_T5_ASlowLoadThatMovesIsLeftAlone) {
  script({.computes = true, .load = minutes(20), .progress_steps = 2});
  const auto client = request(demo_, minutes(25), RequestClass::kOperator);
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

TEST_F(StallGuardTest, L8_ReportsOfProgressAloneAreMovement) {
  script({.computes = false, .load = minutes(20), .progress_steps = 40});
  const auto client = request(demo_, minutes(25), RequestClass::kOperator);
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

TEST_F(StallGuardTest, L8_AnAccessLogOfOurOwnQuestionsIsNoMovement) {
  script({.fate = sim::Fate::kNeverReady, .computes = false, .probed_every = seconds(1)});
  const auto client = request(demo_);
  run_until_answered(*client);
  ASSERT_TRUE(client->error);
  EXPECT_EQ(client->error->extras->failure->failure_class, "stalled");
  EXPECT_THAT(client->error->extras->failure->reason,
              HasSubstr("; when last asked it answered 503"));
  EXPECT_GT(world_.workers.newest("demo")->printed().size(), 3000U);
}

TEST_F(StallGuardTest, L8_ALogThatGrowsByItselfIsMovement) {
  sim::WorkerScript slow{.computes = false, .load = minutes(5), .progress_steps = 1};
  for (int at = 50; at < 300; at += 50) slow.prints.push_back({seconds(at), "shard\n"});
  script(slow);
  const auto client = request(demo_, minutes(10));
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

TEST_F(StallGuardTest, L8_TheModelsOwnLoadStallCounts) {
  demo_->settings.load_stall = seconds(5);
  script({.fate = sim::Fate::kNeverReady, .computes = false});
  const SteadyTime begin = world_.clock.now();
  const auto client = request(demo_);
  run_until_answered(*client);
  ASSERT_TRUE(client->error);
  EXPECT_EQ(client->error->extras->failure->failure_class, "stalled");
  EXPECT_LE(world_.clock.now() - begin, seconds(9));
}

TEST_F(StallGuardTest, L8_ASuspendedMachineStallsNoLoad) {
  script({.computes = false, .load = seconds(50), .progress_steps = 1});
  const auto client = request(demo_);
  world_.clock.advance(seconds(20));
  world_.clock.suspend(std::chrono::hours(8));
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
}

TEST_F(StallGuardTest, L9_AWedgedWorkerIsStoppedAndItsRequestsAreTold) {
  script({.wedges = true});
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(60), sink);
  const SteadyTime begin = world_.clock.now();
  ASSERT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, minutes(10)));
  EXPECT_GE(world_.clock.now() - begin, seconds(119));
  EXPECT_LE(world_.clock.now() - begin, seconds(123));
  ASSERT_FALSE(sink->end->has_value());
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
  const Error why = explain(client->lease.instance_id());
  EXPECT_EQ(why.reason, Reason::kWorkerDied);
  EXPECT_EQ(why.message,
            "The worker of demo was stopped: its progress stood still for 2 min with 1 request in "
            "flight. The next request starts it again.");
  client->lease = {};
  world_.clock.advance(seconds(5));
  EXPECT_THAT(instance_events(), ElementsAre("load.started", "load.ready", "instance.stopping",
                                             "instance.died", "instance.exited"));
  script({});
  EXPECT_TRUE(served(demo_)->lease) << "the next request reloads";
}

TEST_F(StallGuardTest, L9_WorkThatGetsOnAndIdlenessAreNotWedged) {
  script({.tokens = {"a", "b"}, .token_every = minutes(30)});
  const auto client = served(demo_);
  world_.clock.advance(minutes(20));
  EXPECT_EQ(state(), "busy");
}

TEST_F(StallGuardTest, L9_TheModelsOwnWedgeAfterCounts) {
  demo_->settings.wedge_after = seconds(10);
  script({.wedges = true});
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(60), sink);
  const SteadyTime begin = world_.clock.now();
  ASSERT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, minutes(10)));
  EXPECT_LE(world_.clock.now() - begin, seconds(13));
}

TEST_F(StallGuardTest, L9_ACommandIsNeverWedgedUnlessThatIsConfigured) {
  demo_->settings.kind = catalog::Kind::kCommand;
  script({.wedges = true});
  {
    const auto client = served(demo_);
    const auto sink = std::make_shared<TestSink>();
    const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(60), sink);
    world_.clock.advance(minutes(30));
    EXPECT_EQ(sink->ends, 0);
    EXPECT_EQ(state(), "busy");
  }
  world_.clock.advance(seconds(1));
  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(5));
  ASSERT_EQ(state(), "absent");
  demo_->settings.wedge_after = seconds(10);
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(60), sink);
  EXPECT_TRUE(world_.clock.run_until([&] { return sink->ends > 0; }, minutes(1)));
}

}  // namespace
}  // namespace berth::residency
