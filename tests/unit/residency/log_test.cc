#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/result.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using sim::Fate;
using testing::Not;

const std::string kFrames =
    "Traceback (most recent call last):\n"
    "  File \"load.py\", line 7, in load\n";
const std::string kTraceback = kFrames + "ValueError: Model type zebra not supported\n";
const std::string kChain =
    "\nDuring handling of the above exception, another exception occurred:\n\n";

class LoadLogTest : public ResidencyTest {
 protected:
  // What the failure of a load that this script makes says. Nothing: it did not fail.
  std::optional<FailureEvidence> failure_of(const sim::WorkerScript& one) {
    script(one);
    begin_ = world_.clock.now();
    const auto client = request(demo_, minutes(60));
    run_until_answered(*client);
    took_ = world_.clock.now() - begin_;
    if (!client->error) return std::nullopt;
    EXPECT_EQ(client->error->reason, Reason::kLoadFailed);
    return *client->error->extras->failure;
  }
  sim::SimWorker& worker() { return *world_.workers.newest("demo"); }

  SteadyTime begin_{};
  Duration took_{};
};

// The incident: one traceback, and a process that then sits there for ever, computing a little.
TEST_F(LoadLogTest, L7_ATracebackAndThenSilenceFailsTheLoadWithinTheHold) {
  const auto failure =
      failure_of({.fate = Fate::kNeverReady, .prints = {{seconds(3), kTraceback}}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "permanent");
  EXPECT_EQ(failure->reason, "ValueError: Model type zebra not supported");
  EXPECT_EQ(took_, milliseconds(1) + seconds(3) + milliseconds(100)) << "and nothing else";
  EXPECT_TRUE(failure->signal.empty()) << "our SIGKILL is no cause (L20)";
  EXPECT_FALSE(failure->exit_code);
  EXPECT_TRUE(worker().killed());
  EXPECT_FALSE(worker().terminated()) << "a child that loads may not be reading anything (L3)";
  world_.clock.advance(seconds(1));
  EXPECT_EQ(state(), "absent");
  EXPECT_TRUE(world_.workers.present().empty());
  const auto again = request(demo_);
  run_until_answered(*again);
  EXPECT_TRUE(again->error) << "it is remembered (L22)";
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(LoadLogTest, L7_AFatalLineCountsBeforeTheWorkerListens) {
  const auto failure =
      failure_of({.fate = Fate::kNeverListens,
                  .prints = {{milliseconds(5), "GGML_ASSERT(n_tokens > 0) failed\n"}}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "crash");
  EXPECT_EQ(took_, milliseconds(6)) << "nothing is held";
}

TEST_F(LoadLogTest, L12_ALineInPiecesCountsWhenItIsWhole) {
  const auto failure = failure_of({.fate = Fate::kNeverReady,
                                   .prints = {{seconds(1), "GGML_ASSERT(n_tok"},
                                              {seconds(2), "ens > 0) fai"},
                                              {seconds(3), "led\n"}}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, "GGML_ASSERT(n_tokens > 0) failed");
  EXPECT_EQ(took_, milliseconds(1) + seconds(3));
}

TEST_F(LoadLogTest, L12_HalfALineIsNoVerdict) {
  EXPECT_FALSE(failure_of(
      {.load = seconds(5), .prints = {{milliseconds(20), "GGML_ASSERT(n_tokens > 0) failed"}}}));
}

TEST_F(LoadLogTest, L13_AChainThatEndsSurvivablyLetsTheLoadGoOn) {
  EXPECT_FALSE(failure_of(
      {.load = seconds(5),
       .prints = {{milliseconds(20), kTraceback},
                  {milliseconds(90), kChain + kFrames + "ConnectionResetError: peer\n"}}}));
}

TEST_F(LoadLogTest, L13_OfChainedExceptionsTheLastIsTheVerdict) {
  const auto failure = failure_of(
      {.load = seconds(5),
       .prints = {{milliseconds(20), kFrames + "ModuleNotFoundError: No module named 'zebra'\n"},
                  {milliseconds(90), kChain + kTraceback}}});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->reason, "ValueError: Model type zebra not supported");
}

TEST_F(LoadLogTest, L14_TheModelsOwnFatalExceptionsCount) {
  demo_->settings.fatal_exceptions = {"ZebraError"};
  EXPECT_FALSE(failure_of({.load = seconds(5), .prints = {{milliseconds(20), kTraceback}}}));
  auto other = sim::make_model("other");
  other->settings.fatal_exceptions = {"ZebraError"};
  script({.load = seconds(5), .prints = {{milliseconds(20), kFrames + "ZebraError: stripes\n"}}});
  const auto client = request(other);
  run_until_answered(*client);
  ASSERT_TRUE(client->error);
  EXPECT_EQ(client->error->extras->failure->reason, "ZebraError: stripes");
}

TEST_F(LoadLogTest, L15_AfterReadyTheLogIsNoVerdict) {
  EXPECT_FALSE(failure_of({.load = milliseconds(50), .prints = {{seconds(1), kTraceback}}}));
  world_.clock.advance(seconds(10));
  EXPECT_FALSE(worker().killed());
}

TEST_F(LoadLogTest, L21_AtAnExitTheLineSaysWhyAndTheStatusIsKept) {
  const auto failure = failure_of({.fate = Fate::kExitsLoading,
                                   .exit = core::Signalled{6, false},
                                   .last_words = "GGML_ASSERT(n_tokens > 0) failed\n"});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "crash");
  EXPECT_EQ(failure->signal, "SIGABRT");
  EXPECT_EQ(took_, milliseconds(61)) << "nothing is waited for";
}

TEST_F(LoadLogTest, L13_TheExitEndsTheHold) {
  const auto failure = failure_of({.fate = Fate::kExitsAtOnce, .last_words = kTraceback});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "permanent");
  EXPECT_EQ(failure->exit_code, 1);
  EXPECT_EQ(took_, milliseconds(1));
}

TEST_F(LoadLogTest, L21_ADeathWithoutALineIsUnclassified) {
  const auto failure = failure_of({.fate = Fate::kExitsLoading,
                                   .exit = core::Signalled{11, true},
                                   .last_words = "something unknown went wrong\n"});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "unclassified");
  EXPECT_EQ(failure->signal, "SIGSEGV");
}

TEST_F(LoadLogTest, L11_ALogThatCannotBeReadIsNoVerdictAndHoldsUpNobody) {
  const auto failure =
      failure_of({.fate = Fate::kExitsLoading, .log_never_read = true, .last_words = kTraceback});
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure_class, "unclassified");
  EXPECT_EQ(failure->exit_code, 1);
  EXPECT_LE(took_, milliseconds(61) + seconds(1));
}

TEST_F(LoadLogTest, L7_OfTheWorkersWordAndItsLogsTheFirstStands) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim::SimWorld world(seed);
    world.workers.set_script([](const std::string& /*model*/) {
      return sim::WorkerScript{.fate = Fate::kSaysLoadFailedAndExits,
                               .last_words = "GGML_ASSERT(n_tokens > 0) failed\n"};
    });
    Residency residency(world.environment());
    TestClient client;
    client.claim =
        residency.acquire(demo_, RequestClass::kForeground, world.clock.now() + minutes(5), client);
    world.clock.advance(seconds(5));
    ASSERT_TRUE(client.failed_with(Reason::kLoadFailed));
    const std::string& failure_class = client.error->extras->failure->failure_class;
    const std::string& reason = client.error->extras->failure->reason;
    EXPECT_EQ(failure_class == "crash", reason.find("GGML_ASSERT") != std::string::npos) << reason;
    EXPECT_EQ(failure_class == "permanent", reason.find("zebra") != std::string::npos) << reason;
    EXPECT_EQ(world.workers.present().size(), 0U);
  }
}

TEST_F(LoadLogTest, L7_AnUnloadDuringTheHoldInterruptsTheLoad) {
  script({.fate = Fate::kNeverReady, .prints = {{seconds(1), kTraceback}}});
  const auto client = request(demo_);
  world_.clock.advance(seconds(1) + milliseconds(50));
  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(client->error);
  EXPECT_THAT(instance_events(), Not(testing::Contains("load.failed")));
}

}  // namespace
}  // namespace berth::residency
