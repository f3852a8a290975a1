#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class LoadFailureTest : public ResidencyTest {
 protected:
  const FailureEvidence& failure_of(const TestClient& client) {
    EXPECT_TRUE(client.failed_with(Reason::kLoadFailed));
    EXPECT_TRUE(client.error->extras && client.error->extras->failure);
    return *client.error->extras->failure;
  }
  // A client whose load has failed, while the evidence of that is still collected.
  std::unique_ptr<TestClient> fail_with_the_verdict_out() {
    sim::WorkerScript exits;
    exits.fate = sim::Fate::kExitsAtOnce;
    exits.log_never_read = true;
    script(exits);
    auto first = request(demo_);
    world_.clock.advance(milliseconds(100));
    EXPECT_EQ(first->answers, 0);
    return first;
  }
};

TEST_F(LoadFailureTest, L7_AnExitIsKnownWithinMillisecondsWithItsStatus) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsLoading;
  script(exits);
  const auto client = request(demo_);
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  // 1 ms to prepare, 10 ms to listen, 50 ms of load: nothing is waited for after that.
  EXPECT_EQ(world_.clock.now() - start, milliseconds(61));
  const FailureEvidence& failure = failure_of(*client);
  EXPECT_EQ(failure.failure_class, "unclassified");
  EXPECT_EQ(failure.exit_code, 1);
  EXPECT_TRUE(failure.signal.empty());
  EXPECT_EQ(client->error->message,
            "demo could not be loaded: exit 1: its worker ended before the model was ready; "
            "`berth logs demo` shows what it wrote.");
}

TEST_F(LoadFailureTest, L7_TheExitOfACommandIsKnownWithinMillisecondsToo) {
  demo_->settings.kind = catalog::Kind::kCommand;
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsLoading;
  exits.has_stream = false;
  script(exits);
  const auto client = request(demo_);
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, milliseconds(61));
  EXPECT_EQ(failure_of(*client).exit_code, 1);
}

// T1: cause class, exit status or signal, last log lines and the record's id.
TEST_F(LoadFailureTest, T1_TheErrorCarriesItsEvidence) {
  sim::WorkerScript crashes;
  crashes.fate = sim::Fate::kExitsAtOnce;
  crashes.exit = core::Signalled{11, true};
  crashes.log_tail = {"first line", "last line"};
  script(crashes);
  const auto client = request(demo_);
  run_until_answered(*client);
  const FailureEvidence& failure = failure_of(*client);
  EXPECT_EQ(failure.signal, "SIGSEGV");
  EXPECT_FALSE(failure.exit_code);
  EXPECT_THAT(failure.log_tail, ElementsAre("first line", "last line"));
  EXPECT_EQ(failure.command.front(), "berth-worker");
  EXPECT_TRUE(world_.store.load_records().contains(failure.id));
  EXPECT_EQ(world_.store.load_records().at(failure.id).outcome, "failed");
  EXPECT_EQ(world_.store.load_records().at(failure.id).exit, "SIGSEGV (core dumped)");
  EXPECT_GT(failure.since_unix_ms, 0);
}

TEST_F(LoadFailureTest, L7_ATypedFailureSaysWhyAndEndsTheProcess) {
  sim::WorkerScript says;
  says.fate = sim::Fate::kSaysLoadFailed;
  script(says);
  const auto client = request(demo_);
  run_until_answered(*client);
  const FailureEvidence& failure = failure_of(*client);
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_EQ(failure.reason, "unknown model architecture: 'zebra'");
  EXPECT_FALSE(failure.exit_code);
  EXPECT_TRUE(failure.signal.empty()) << "our SIGKILL is no cause (L20)";
  EXPECT_TRUE(world_.workers.newest("demo")->killed());
  EXPECT_FALSE(world_.workers.newest("demo")->terminated());
  EXPECT_EQ(client->error->message,
            "demo could not be loaded: unknown model architecture: 'zebra'.");
}

TEST_F(LoadFailureTest, L7_TheLastWordsCountInWhateverOrderTheyArrive) {
  sim::WorkerScript both;
  both.fate = sim::Fate::kSaysLoadFailedAndExits;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::SimWorld world(seed);
    world.workers.set_script([&both](const std::string& /*model*/) { return both; });
    Residency residency(world.environment());
    TestClient client;
    client.claim =
        residency.acquire(demo_, RequestClass::kForeground, world.clock.now() + minutes(5), client);
    world.clock.advance(seconds(5));
    ASSERT_TRUE(client.failed_with(Reason::kLoadFailed));
    EXPECT_EQ(client.error->extras->failure->failure_class, "permanent") << "seed " << seed;
  }
}

TEST_F(LoadFailureTest, L7_LoadTimeoutIsTheHardCap) {
  sim::WorkerScript never;
  never.fate = sim::Fate::kNeverReady;
  script(never);
  demo_->settings.load_timeout = seconds(90);
  const auto client = request(demo_);
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, seconds(90));
  EXPECT_EQ(failure_of(*client).failure_class, "timeout");
  EXPECT_EQ(client->error->message,
            "demo could not be loaded: it was not ready within 1 min 30 s.");
}

TEST_F(LoadFailureTest, L7_AWorkerThatNeverListensIsCappedToo) {
  sim::WorkerScript never;
  never.fate = sim::Fate::kNeverListens;
  script(never);
  const auto client = request(demo_, minutes(60));
  run_until_answered(*client);
  EXPECT_TRUE(client->failed_with(Reason::kDeadline)) << "queue_timeout is shorter (M19)";
  world_.clock.advance(minutes(21));
  EXPECT_EQ(state(), "absent");
  EXPECT_EQ(world_.events.count("load.failed"), 1U);
}

TEST_F(LoadFailureTest, L7_AnExecFailureIsALaunchFailure) {
  sim::WorkerScript gone;
  gone.fate = sim::Fate::kLaunchError;
  script(gone);
  const auto client = request(demo_);
  run_until_answered(*client);
  EXPECT_EQ(failure_of(*client).failure_class, "launch");
  EXPECT_EQ(client->error->message,
            "demo could not be loaded: execve <path> No such file or directory.");
  EXPECT_TRUE(world_.store.process_records().empty());
  EXPECT_THAT(instance_events(), ElementsAre("load.started", "load.failed", "failure.stands"));
}

TEST_F(LoadFailureTest, L25_AMissingFileFailsBeforeAnyProcessIsStarted) {
  sim::WorkerScript missing;
  missing.fate = sim::Fate::kPrepareError;
  script(missing);
  const auto client = request(demo_);
  run_until_answered(*client);
  EXPECT_EQ(failure_of(*client).failure_class, "launch");
  EXPECT_TRUE(world_.workers.all().empty());
  EXPECT_THAT(client->error->message, Not(HasSubstr("/models"))) << "no path reaches a client";
}

// T13: what the catalogue knows to be broken is refused without an instance.
TEST_F(LoadFailureTest, T13_ABrokenModelIsRefusedAtOnce) {
  demo_->problem = "demo-00002-of-00003.gguf is missing";
  const auto client = request(demo_);
  world_.clock.settle();
  EXPECT_EQ(failure_of(*client).failure_class, "permanent");
  EXPECT_THAT(client->error->message, HasSubstr("demo-00002-of-00003.gguf"));
  EXPECT_EQ(world_.events.count("load.started"), 0U);
  EXPECT_EQ(state(), "absent");
}

TEST_F(LoadFailureTest, L7_ALogThatIsNeverReadDelaysTheAnswerByASecondAtMost) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsAtOnce;
  exits.log_never_read = true;
  script(exits);
  const auto client = request(demo_);
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, seconds(1) + milliseconds(1));
  EXPECT_TRUE(failure_of(*client).log_tail.empty());
}

TEST_F(LoadFailureTest, M19_ADeadlineDuringTheSearchForEvidenceHolds) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsAtOnce;
  exits.log_never_read = true;
  script(exits);
  const auto client = request(demo_, milliseconds(500));
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, milliseconds(500));
  EXPECT_TRUE(client->failed_with(Reason::kDeadline));
  EXPECT_THAT(client->error->message, HasSubstr("its load has failed"));
}

TEST_F(LoadFailureTest, AllWhoWaitedLearnIt) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsLoading;
  script(exits);
  const auto first = request(demo_);
  const auto second = request(demo_);
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(first->failed_with(Reason::kLoadFailed));
  EXPECT_TRUE(second->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

// Whoever comes while the evidence of a failed load is collected learns how it failed; the same is
// not started again meanwhile.
TEST_F(LoadFailureTest, L22_WhoComesBeforeTheVerdictSharesIt) {
  const auto first = fail_with_the_verdict_out();
  const auto second = request(demo_);
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(first->failed_with(Reason::kLoadFailed));
  EXPECT_TRUE(second->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(world_.workers.all().size(), 1U);
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
}

// L24: an operator's try does not wait for it, and is not marked by it.
TEST_F(LoadFailureTest, L24_AFailureNeverMarksTheNextLoad) {
  const auto first = fail_with_the_verdict_out();
  script(sim::WorkerScript{});
  const auto second = request(demo_, minutes(5), RequestClass::kOperator);
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(first->failed_with(Reason::kLoadFailed));
  EXPECT_TRUE(second->lease);
}

// L1: what a worker that was given up says later concerns nobody.
TEST_F(LoadFailureTest, L1_LateWordsOfAnOldInstanceAreDropped) {
  sim::WorkerScript slow;
  slow.fate = sim::Fate::kSaysLoadFailed;
  slow.fate_after = milliseconds(100);
  slow.kill_to_exit = milliseconds(300);
  script(slow);
  auto first = request(demo_);
  world_.clock.advance(milliseconds(50));
  first.reset();
  residency_->unload("demo", false, [](const Result<UnloadOutcome>& /*outcome*/) {});
  script(sim::WorkerScript{});
  const auto second = request(demo_);
  run_until_answered(*second);
  EXPECT_TRUE(second->lease);
  EXPECT_EQ(world_.events.count("load.failed"), 0U);
  EXPECT_EQ(world_.events.count("load.interrupted"), 1U);
}

TEST_F(LoadFailureTest, L2_TheNextLoadWaitsUntilTheLastProcessIsGone) {
  sim::WorkerScript stays;
  stays.fate = sim::Fate::kSaysLoadFailed;
  stays.kill_to_exit = seconds(3);
  script(stays);
  const auto first = request(demo_);
  run_until_answered(*first);
  script(sim::WorkerScript{});
  ASSERT_TRUE(residency_->retry("demo", ""));
  const auto second = request(demo_);
  world_.clock.advance(seconds(2));
  EXPECT_EQ(world_.workers.all().size(), 1U);
  EXPECT_EQ(state(), "stopping");
  ASSERT_FALSE(second->progress.empty());
  EXPECT_EQ(second->progress.back().phase, "stopping");
  run_until_answered(*second);
  EXPECT_TRUE(second->lease);
}

TEST_F(LoadFailureTest, L2_AStuckInstanceIsNotWaitedForAndALateExitIsCredited) {
  sim::WorkerScript stays;
  stays.fate = sim::Fate::kSaysLoadFailed;
  stays.kill_to_exit = seconds(60);
  script(stays);
  const auto first = request(demo_);
  run_until_answered(*first);
  script(sim::WorkerScript{});
  ASSERT_TRUE(residency_->retry("demo", ""));
  const auto second = served(demo_);
  EXPECT_EQ(world_.events.count("instance.stuck"), 1U);
  ASSERT_EQ(residency_->instances().size(), 2U);
  EXPECT_EQ(residency_->instances().at(0).state, "stuck");
  EXPECT_EQ(world_.store.process_records().size(), 2U);
  world_.clock.advance(seconds(60));
  EXPECT_EQ(residency_->instances().size(), 1U);
  EXPECT_EQ(world_.store.process_records().size(), 1U);
  EXPECT_EQ(world_.events.count("instance.exited"), 1U);
}

}  // namespace
}  // namespace berth::residency
