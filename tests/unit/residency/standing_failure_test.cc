#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/failure_book.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;
using testing::Not;

class StandingFailureTest : public ResidencyTest {
 protected:
  StandingFailureTest() {
    world_.find_model = [this](const std::string& name) -> std::shared_ptr<const catalog::Model> {
      return name == demo_->name ? demo_ : other_;
    };
    residency_ = std::make_unique<Residency>(world_.environment());
  }
  void script_fate(sim::Fate fate) {
    sim::WorkerScript one;
    one.fate = fate;
    script(one);
  }
  // A load that fails so; its failure stands then.
  void fail_load(sim::Fate fate) {
    script_fate(fate);
    const auto client = request(demo_);
    run_until_answered(*client);
    EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
    world_.clock.advance(seconds(5));
    EXPECT_EQ(residency_->standing_failures().size(), 1U);
    script(sim::WorkerScript{});
  }
  // Three deaths in a row of what was ready, each without a signal of ours.
  void crash_three_times(const std::function<sim::WorkerScript(int)>& script_of) {
    for (int death = 0; death < 3; ++death) {
      script(script_of(death));
      served(demo_)->lease = {};
      world_.clock.settle();
      world_.workers.newest("demo")->die(core::Signalled{SIGSEGV, false});
      world_.clock.settle();
    }
  }
  static sim::WorkerScript unread_log(int /*death*/) {
    sim::WorkerScript one;
    one.log_never_read = true;
    return one;
  }
  // The server stops and starts again, with what the store kept.
  void restart() {
    residency_ = std::make_unique<Residency>(world_.environment());
    bool done = false;
    residency_->restore_failures([&done] { done = true; });
    EXPECT_FALSE(done);
    world_.clock.settle();
    EXPECT_TRUE(done);
  }
  // The only record of the store.
  const core::FailureRecord& record() {
    EXPECT_EQ(world_.store.failure_records().size(), 1U);
    return world_.store.failure_records().begin()->second;
  }

  std::shared_ptr<catalog::Model> other_;  // in the catalogue, too
};

TEST_F(StandingFailureTest, L22_ARequestIsRefusedAtOnceWithoutAProcess) {
  fail_load(sim::Fate::kSaysLoadFailed);
  const std::size_t processes = world_.workers.all().size();
  const SteadyTime before = world_.clock.now();
  const auto client = request(demo_);
  world_.clock.settle();
  EXPECT_EQ(world_.clock.now(), before);
  ASSERT_TRUE(client->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(world_.workers.all().size(), processes);
  EXPECT_EQ(world_.events.count("load.started"), 1U);
  const FailureEvidence& failure = *client->error->extras->failure;
  EXPECT_EQ(failure.failure_class, "permanent");
  EXPECT_EQ(failure.id, record().id.to_string());
  EXPECT_EQ(failure.since_unix_ms, record().ended.time_since_epoch().count());
  EXPECT_THAT(client->error->message, HasSubstr("unknown model architecture: 'zebra'"));
  EXPECT_THAT(client->error->message, HasSubstr("berth retry demo"));
  EXPECT_THAT(client->error->message, HasSubstr("berth why demo"));
  EXPECT_THAT(client->error->message, Not(HasSubstr("/models")));
}

// T8: a client that polls a broken model costs nothing.
TEST_F(StandingFailureTest, T8_PollingStartsOneProcess) {
  script_fate(sim::Fate::kExitsLoading);
  for (int poll = 0; poll < 50; ++poll) {
    const auto client = request(demo_);
    world_.clock.advance(minutes(1));
    EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
  }
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

// T9: and nobody else suffers.
TEST_F(StandingFailureTest, T9_L25_OtherModelsLoad) {
  fail_load(sim::Fate::kExitsLoading);
  other_ = sim::make_model("other");
  EXPECT_TRUE(served(other_)->lease);
}

TEST_F(StandingFailureTest, L18_TheRecordIsComplete) {
  sim::WorkerScript crashes;
  crashes.fate = sim::Fate::kExitsAtOnce;
  crashes.exit = core::Signalled{SIGSEGV, true};
  crashes.log_tail = {"first line", "last line"};
  script(crashes);
  const auto client = request(demo_);
  run_until_answered(*client);
  const core::FailureRecord& kept = record();
  EXPECT_EQ(kept.model, "demo");
  EXPECT_EQ(kept.failure_class, core::FailureClass::kUnclassified);
  EXPECT_EQ(kept.exit, core::ExitStatus(core::Signalled{SIGSEGV, true}));
  EXPECT_EQ(kept.command.front(), "berth-worker");
  EXPECT_EQ(kept.log_tail, crashes.log_tail);
  EXPECT_LT(kept.started, kept.ended);
  EXPECT_EQ(kept.provenance.window, 4096U);
  ASSERT_EQ(kept.memory.size(), 1U);
  EXPECT_EQ(kept.memory.front().free_before, world_.free_memory);
  EXPECT_EQ(kept.memory.front().free_at_failure, world_.free_memory);
}

TEST_F(StandingFailureTest, L23_RetryLiftsByHand) {
  EXPECT_FALSE(residency_->retry("demo", "eve"));
  fail_load(sim::Fate::kExitsLoading);
  const auto lifted = residency_->retry("demo", "eve");
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->lifted->cause, core::LiftCause::kHand);
  EXPECT_EQ(record().lifted, lifted->lifted);
  EXPECT_EQ(world_.events.count("failure.lifted"), 1U);
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(StandingFailureTest, L23_AnOperatorsLoadLiftsIt) {
  fail_load(sim::Fate::kExitsLoading);
  const auto client = request(demo_, minutes(1), RequestClass::kOperator);
  run_until_answered(*client);
  EXPECT_TRUE(client->lease);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kHand);
}

TEST_F(StandingFailureTest, L23_AFileThatMovedDuringItsLoadLiftsItsFailure) {
  sim::WorkerScript one;
  one.fate = sim::Fate::kSaysLoadFailed;
  one.fate_after = milliseconds(100);
  script(one);
  const auto client = request(demo_);
  world_.clock.advance(milliseconds(50));
  auto other = std::make_shared<catalog::Model>(*demo_);
  other->header_hash = 77;
  demo_ = other;
  residency_->catalog_changed();
  run_until_answered(*client);
  EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(residency_->standing_failures().empty());
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->moved->field, core::ProvenanceField::kFiles);
}

TEST_F(StandingFailureTest, L23_AnotherFileLiftsItAndTheRecordSaysSo) {
  fail_load(sim::Fate::kSaysLoadFailed);
  residency_->catalog_changed();
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  auto other = std::make_shared<catalog::Model>(*demo_);
  other->header_hash = 77;
  other->problem = "is still being written";
  demo_ = other;
  residency_->catalog_changed();
  EXPECT_EQ(residency_->standing_failures().size(), 1U) << "nothing is known of its file yet";
  other->problem.clear();
  residency_->catalog_changed();
  EXPECT_TRUE(residency_->standing_failures().empty());
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->moved->field, core::ProvenanceField::kFiles);
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(StandingFailureTest, L21_RestartKeepsPermanentAndDropsTransient) {
  fail_load(sim::Fate::kSaysLoadFailed);
  restart();
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  const auto client = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));

  residency_->retry("demo", "");
  demo_->settings.load_timeout = seconds(9);
  fail_load(sim::Fate::kNeverReady);
  restart();
  EXPECT_TRUE(residency_->standing_failures().empty());
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(StandingFailureTest, L23_RestartWithAnotherWindowLiftsIt) {
  fail_load(sim::Fate::kSaysLoadFailed);
  demo_->served_context = 8192;
  restart();
  EXPECT_TRUE(residency_->standing_failures().empty());
  EXPECT_EQ(to_string(*record().lifted), "the served window moved: 4096 -> 8192");
}

TEST_F(StandingFailureTest, L20_AnInterruptedLoadLeavesNoMark) {
  const auto client = request(demo_);
  world_.clock.advance(milliseconds(20));
  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(20));
  EXPECT_TRUE(world_.store.failure_records().empty());
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(StandingFailureTest, L24_ALateReportDoesNotMarkTheNewerInstance) {
  sim::WorkerScript exits;
  exits.fate = sim::Fate::kExitsAtOnce;
  exits.log_never_read = true;  // the report comes a second after the exit
  script(exits);
  const auto first = request(demo_);
  world_.clock.advance(milliseconds(100));
  script(sim::WorkerScript{});
  const auto second = request(demo_, minutes(5), RequestClass::kOperator);
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(first->failed_with(Reason::kLoadFailed));
  EXPECT_TRUE(second->lease);
  EXPECT_TRUE(residency_->standing_failures().empty());
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kSuperseded);
}

TEST_F(StandingFailureTest, L21_FreeMemoryLiftsAResourceFailure) {
  sim::WorkerScript says;
  says.fate = sim::Fate::kSaysLoadFailed;
  says.failure_class = "resource";
  script(says);
  world_.free_memory = 2ULL << 30U;
  run_until_answered(*request(demo_));
  script(sim::WorkerScript{});
  world_.clock.advance(seconds(5));
  world_.free_memory += (256ULL << 20U) - 1;
  const auto early = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(early->failed_with(Reason::kLoadFailed));
  world_.free_memory += 1;
  EXPECT_TRUE(served(demo_)->lease);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kMemory);
}

TEST_F(StandingFailureTest, L21_WantOfProcessesToStartAWorkerPassesByItself) {
  sim::WorkerScript lacks;
  lacks.fate = sim::Fate::kLaunchError;
  lacks.launch_lacks_processes = true;
  script(lacks);
  world_.free_memory = 2ULL << 30U;
  const auto client = request(demo_);
  run_until_answered(*client);
  EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
  script(sim::WorkerScript{});
  const auto early = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(early->failed_with(Reason::kLoadFailed)) << "not in a loop";
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(served(demo_)->lease);
  EXPECT_EQ(record().failure_class, core::FailureClass::kResource);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kMemory);
}

TEST_F(StandingFailureTest, L9_ThreeDeathsWithinTwoMinutesAreACrashLoop) {
  for (int death = 0; death < 3; ++death) {
    served(demo_)->lease = {};
    world_.clock.settle();
    world_.workers.newest("demo")->die(core::Signalled{SIGSEGV, false});
    world_.clock.settle();
  }
  const auto client = request(demo_);
  world_.clock.settle();
  ASSERT_TRUE(client->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(client->error->extras->failure->failure_class, "crash_loop");
  EXPECT_EQ(world_.events.count("failure.stands"), 1U);
  EXPECT_EQ(client->error->extras->failure->signal, "SIGSEGV");
  ASSERT_TRUE(residency_->retry("demo", ""));
  EXPECT_TRUE(served(demo_)->lease);
}

// The last death's log says more than that there were three.
TEST_F(StandingFailureTest, L18_ACrashLoopKeepsTheLogOfTheLastDeath) {
  crash_three_times([](int death) {
    sim::WorkerScript one;
    one.log_tail = {"death " + std::to_string(death)};
    return one;
  });
  EXPECT_EQ(record().failure_class, core::FailureClass::kCrashLoop);
  EXPECT_EQ(record().log_tail, std::vector<std::string>{"death 2"});
  EXPECT_EQ(record().instance.to_string(), world_.workers.newest("demo")->instance());
}

TEST_F(StandingFailureTest, L9_ACrashLoopDoesNotWaitForALogThatNobodyReads) {
  crash_three_times(unread_log);
  const auto waiting = request(demo_);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(waiting->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(record().failure_class, core::FailureClass::kCrashLoop);
  EXPECT_TRUE(record().log_tail.empty());
}

TEST_F(StandingFailureTest, L18_AShutdownKeepsACrashLoopThatIsNotKnownToTheEnd) {
  crash_three_times(unread_log);
  bool down = false;
  residency_->shutdown(seconds(1), [&down] { down = true; });
  ASSERT_TRUE(world_.clock.run_until([&down] { return down; }, minutes(1)));
  EXPECT_EQ(record().failure_class, core::FailureClass::kCrashLoop);
}

// The signal that ends a worker whose work stands still is ours.
TEST_F(StandingFailureTest, L20_WhatWeEndedIsNoDeathOfACrashLoop) {
  demo_->settings.wedge_after = seconds(5);
  sim::WorkerScript wedges;
  wedges.wedges = true;
  wedges.ignores_term = true;
  script(wedges);
  for (int death = 0; death < 4; ++death) {
    const auto client = served(demo_);
    const auto sink = std::make_shared<TestSink>();
    const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(60), sink);
    ASSERT_TRUE(world_.clock.run_until([&] { return state() == "absent"; }, minutes(1)));
  }
  EXPECT_TRUE(world_.store.failure_records().empty());
  for (const auto& [id, load] : world_.store.load_records()) {
    EXPECT_EQ(load.outcome, "died");
    EXPECT_EQ(load.exit, "") << "it was SIGKILL, and it was ours";
  }
}

TEST_F(StandingFailureTest, L9_OneDeathForWantOfMemoryThatTheKernelProvesStands) {
  sim::WorkerScript eats;
  eats.kernel_tells_of_oom = true;
  eats.log_tail = {"growing"};
  script(eats);
  served(demo_)->lease = {};
  world_.clock.settle();
  world_.workers.newest("demo")->die(core::Signalled{SIGKILL, false});
  world_.clock.settle();
  EXPECT_EQ(record().failure_class, core::FailureClass::kOom);
  EXPECT_EQ(record().exit, core::ExitStatus(core::Signalled{SIGKILL, false}));
  EXPECT_EQ(record().log_tail, eats.log_tail);
  const auto client = request(demo_);
  world_.clock.advance(minutes(5));
  EXPECT_TRUE(client->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(world_.workers.all().size(), 1U) << "never restarted under the same plan";
}

TEST_F(StandingFailureTest, L9_L21_SigkillAloneProvesNoWantOfMemory) {
  served(demo_)->lease = {};
  world_.clock.settle();
  world_.workers.newest("demo")->die(core::Signalled{SIGKILL, false});
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(world_.store.failure_records().empty());
  EXPECT_TRUE(served(demo_)->lease);

  residency_->unload("demo", true, [](const Result<UnloadOutcome>& /*outcome*/) {});
  world_.clock.advance(seconds(20));
  sim::WorkerScript dies;
  dies.fate = sim::Fate::kExitsLoading;
  dies.exit = core::Signalled{SIGKILL, false};
  script(dies);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kUnclassified);
  EXPECT_EQ(record().exit, core::ExitStatus(core::Signalled{SIGKILL, false}));
}

TEST_F(StandingFailureTest, L9_ALoadThatTheKernelEndsForWantOfMemoryIsOom) {
  sim::WorkerScript dies;
  dies.fate = sim::Fate::kExitsLoading;
  dies.exit = core::Signalled{SIGKILL, false};
  dies.kernel_tells_of_oom = true;
  script(dies);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kOom);
}

TEST_F(StandingFailureTest, L20_TheKernelIsNotAskedForASignalOfOurs) {
  sim::WorkerScript says;
  says.fate = sim::Fate::kSaysLoadFailed;
  says.kernel_tells_of_oom = true;
  script(says);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kPermanent);
}

TEST_F(StandingFailureTest, L21_AWorkerNamesOnlyTheClassesThatItCanKnow) {
  for (const char* name : {"oom", "crash_loop", "launch", "stalled", "timeout"}) {
    sim::WorkerScript says;
    says.fate = sim::Fate::kSaysLoadFailed;
    says.failure_class = name;
    script(says);
    const auto client = request(demo_, minutes(5), RequestClass::kOperator);
    run_until_answered(*client);
    EXPECT_EQ(client->error->extras->failure->failure_class, "unclassified") << name;
    world_.clock.advance(seconds(20));
  }
  // For a program that is not ours our own client speaks.
  demo_->settings.kind = catalog::Kind::kCommand;
  sim::WorkerScript says;
  says.fate = sim::Fate::kSaysLoadFailed;
  says.failure_class = "launch";
  script(says);
  const auto client = request(demo_, minutes(5), RequestClass::kOperator);
  run_until_answered(*client);
  EXPECT_EQ(client->error->extras->failure->failure_class, "launch");
}

TEST_F(StandingFailureTest, L9_ACrashLoopAnswersWhoWaits) {
  sim::WorkerScript one;
  one.sequences = 1;
  script(one);
  std::unique_ptr<TestClient> holder;
  std::unique_ptr<TestClient> waiting;
  for (int death = 0; death < 3; ++death) {
    holder = served(demo_);
    waiting = request(demo_);
    world_.clock.settle();
    world_.workers.newest("demo")->die(core::Exited{3});
    if (death < 2) waiting.reset();
    world_.clock.settle();
    holder.reset();
  }
  EXPECT_TRUE(waiting->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(state(), "absent");
}

class RestoreTest : public StandingFailureTest {
 protected:
  void restart_without_store() {
    world_.store.fail_reads = true;
    residency_ = std::make_unique<Residency>(world_.environment());
    residency_->restore_failures([this] { ++restored_; });
  }
  // What stood is read while a load of that fate is under way.
  void read_while_loading(sim::Fate fate) {
    restart_without_store();
    world_.clock.advance(seconds(6));
    sim::WorkerScript slow;
    slow.fate = fate;
    slow.load = seconds(50);
    script(slow);
    loading_ = request(demo_);
    world_.clock.advance(milliseconds(10));
    world_.store.fail_reads = false;
    world_.clock.advance(FailureBook::kRestoreLater + FailureBook::kRestoreSoon);
    ASSERT_TRUE(residency_->standing_failures().empty()) << "it waits";
    ASSERT_EQ(state(), "loading");
  }
  std::string lifted_class() {
    const Event* const lifted = world_.events.last("failure.lifted");
    EXPECT_NE(lifted, nullptr);
    return lifted == nullptr ? "" : sim::SimEvents::field(*lifted, "failure_class");
  }
  std::unique_ptr<TestClient> loading_;
  void fail_transient() {
    demo_->settings.load_timeout = seconds(9);
    fail_load(sim::Fate::kNeverReady);
  }
  int restored_ = 0;
};

TEST_F(RestoreTest, L21_OneReadThatFailsIsTriedAgain) {
  fail_load(sim::Fate::kSaysLoadFailed);
  restart_without_store();
  world_.clock.advance(seconds(1));
  EXPECT_EQ(restored_, 0);
  world_.store.fail_reads = false;
  world_.clock.advance(seconds(1));
  EXPECT_EQ(restored_, 1);
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  EXPECT_EQ(world_.events.count("server.degraded"), 0U);
}

TEST_F(RestoreTest, L21_AStoreThatCannotBeReadCostsOnlyTheMemory) {
  fail_load(sim::Fate::kSaysLoadFailed);
  restart_without_store();
  world_.clock.advance(seconds(6));
  EXPECT_EQ(restored_, 1);
  EXPECT_TRUE(residency_->standing_failures().empty());
  EXPECT_EQ(world_.events.count("server.degraded"), 1U);
  world_.clock.advance(minutes(10));
  EXPECT_EQ(world_.events.count("server.degraded"), 1U) << "told once";
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(RestoreTest, L21_ARestartDropsWhatIsTransientAlsoWhenTheStoreWorksLater) {
  fail_transient();
  restart_without_store();
  world_.clock.advance(seconds(6));
  EXPECT_FALSE(record().lifted);
  world_.store.fail_reads = false;
  world_.clock.advance(minutes(1));
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kRestart);
  EXPECT_EQ(restored_, 1);
  EXPECT_EQ(world_.events.count("server.degraded"), 2U) << "known again";
}

TEST_F(RestoreTest, L21_WhatOutlivesARestartStandsAgainWhenTheStoreWorks) {
  fail_load(sim::Fate::kSaysLoadFailed);
  restart_without_store();
  world_.clock.advance(seconds(6));
  world_.store.fail_reads = false;
  world_.clock.advance(minutes(1));
  EXPECT_FALSE(record().lifted);
  ASSERT_EQ(residency_->standing_failures().size(), 1U);
}

TEST_F(RestoreTest, L20_AnInterruptedLoadLeavesNoMarkOnWhatIsReadLate) {
  fail_load(sim::Fate::kSaysLoadFailed);
  restart_without_store();
  world_.clock.advance(seconds(6));
  script_fate(sim::Fate::kNeverReady);
  const auto waiting = request(demo_);
  world_.clock.advance(seconds(1));
  residency_->unload("demo", true, [](const Result<UnloadOutcome>&) {});
  world_.clock.advance(seconds(1));
  EXPECT_EQ(world_.events.count("load.interrupted"), 1U);
  world_.store.fail_reads = false;
  world_.clock.advance(minutes(1));
  EXPECT_FALSE(record().lifted);
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
}

TEST_F(RestoreTest, L23_ByHandLiftsAlsoWhatIsReadLateAndWaitsForALoad) {
  fail_load(sim::Fate::kSaysLoadFailed);
  read_while_loading(sim::Fate::kNeverReady);
  const auto lifted = residency_->retry("demo", "ann");
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->id, record().id);
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kHand);
  EXPECT_EQ(lifted_class(), "permanent");
  EXPECT_FALSE(residency_->retry("demo", "ann")) << "once";
}

TEST_F(RestoreTest, L23_TheClassOfWhatWaitsForALoadIsToldWhenThatSucceeds) {
  fail_load(sim::Fate::kSaysLoadFailed);
  read_while_loading(sim::Fate::kServes);
  EXPECT_TRUE(served(demo_)->lease);
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kSuccess);
  EXPECT_EQ(lifted_class(), "permanent");
}

TEST_F(RestoreTest, L23_TheClassOfWhatWaitsForALoadIsToldWhenThatFails) {
  fail_load(sim::Fate::kSaysLoadFailed);
  const Uuid old = record().id;
  demo_->settings.load_timeout = seconds(50);
  read_while_loading(sim::Fate::kNeverReady);
  world_.clock.advance(minutes(1));
  EXPECT_EQ(world_.store.failure_records().at(old).lifted->cause, core::LiftCause::kSuperseded);
  EXPECT_EQ(lifted_class(), "permanent") << "that of the older one";
}

TEST_F(RestoreTest, L23_WhatMovedWhileItWaitedForALoadLiftsItWhenThatIsInterrupted) {
  world_.program = {{"/srv/server.py", 1, 2, 3}};
  fail_load(sim::Fate::kSaysLoadFailed);
  read_while_loading(sim::Fate::kNeverReady);
  world_.program->front().size = 9;
  residency_->unload("demo", true, [](const Result<UnloadOutcome>&) {});
  world_.clock.advance(seconds(1));
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->cause, core::LiftCause::kProvenance);
  EXPECT_TRUE(residency_->standing_failures().empty());
}

TEST_F(RestoreTest, L24_WhatIsReadLateDoesNotOvertakeANewerLoad) {
  fail_load(sim::Fate::kSaysLoadFailed);
  const Uuid old = record().id;
  restart_without_store();
  world_.clock.advance(seconds(6));
  EXPECT_TRUE(served(demo_)->lease);
  other_ = sim::make_model("other");
  script_fate(sim::Fate::kSaysLoadFailed);
  run_until_answered(*request(other_));
  world_.store.fail_reads = false;
  world_.clock.advance(minutes(1));
  const auto& records = world_.store.failure_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records.at(old).lifted->cause, core::LiftCause::kSuperseded);
  ASSERT_EQ(residency_->standing_failures().size(), 1U) << "that of this run stands on";
  EXPECT_EQ(residency_->standing_failures().front().model, "other");
}

TEST_F(StandingFailureTest, L21_AShortageBeforeTheWorkerListensPassesByItself) {
  sim::WorkerScript lacks;
  lacks.fate = sim::Fate::kExitsAtOnce;
  lacks.last_words = "berth-worker: cannot start now: socket: Too many open files\n";
  script(lacks);
  run_until_answered(*request(demo_));
  EXPECT_EQ(record().failure_class, core::FailureClass::kResource);
  EXPECT_EQ(record().failing_domain, core::kLaunchDomain);
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  world_.clock.advance(seconds(2));
  script(sim::WorkerScript{});
  EXPECT_TRUE(served(demo_)->lease);
}

TEST_F(StandingFailureTest, L21_EachShortageInARowStandsTwiceAsLong) {
  sim::WorkerScript lacks;
  lacks.fate = sim::Fate::kExitsAtOnce;
  lacks.last_words = "berth-worker: cannot start now: socket: Too many open files\n";
  script(lacks);
  // One request each second for ten minutes.
  for (int i = 0; i < 600; ++i) {
    const auto client = request(demo_);
    world_.clock.advance(seconds(1));
  }
  EXPECT_GE(world_.workers.all().size(), 14U);
  EXPECT_LE(world_.workers.all().size(), 16U) << "seven in the first minute, then one a minute";
}

TEST_F(StandingFailureTest, L23_AMendedProgramLiftsIt) {
  world_.program = {{"/srv/server.py", 1, 2, 3}};
  fail_load(sim::Fate::kExitsLoading);
  EXPECT_EQ(record().provenance.program, world_.program);
  residency_->catalog_changed();
  EXPECT_EQ(residency_->standing_failures().size(), 1U);
  world_.program->front().size = 9;
  residency_->catalog_changed();
  ASSERT_TRUE(record().lifted);
  EXPECT_EQ(record().lifted->moved->field, core::ProvenanceField::kProgram);
  EXPECT_TRUE(served(demo_)->lease);
}

// What was known before the load may be of long ago.
TEST_F(StandingFailureTest, L19_TheProgramIsWhatTheLaunchFound) {
  world_.program = {{"/srv/server.py", 1, 2, 3}};
  script_fate(sim::Fate::kExitsLoading);
  const auto client = request(demo_);
  world_.program->front().size = 9;
  run_until_answered(*client);
  EXPECT_EQ(record().provenance.program->front().size, 9U);
}

TEST_F(StandingFailureTest, L23_ARefusedRequestAsksForALook) {
  fail_load(sim::Fate::kExitsLoading);
  EXPECT_EQ(world_.standing_met, 0);
  run_until_answered(*request(demo_));
  EXPECT_EQ(world_.standing_met, 1);
}

}  // namespace
}  // namespace berth::residency
