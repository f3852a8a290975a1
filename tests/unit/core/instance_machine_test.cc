#include "supervisor/core/instance_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/moment.h"

namespace berth::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using Action = InstanceAction;
using State = InstanceState;

const Uuid kId = Uuid::parse("01977430-1ec8-7002-8000-000000000002");
const Uuid kOther = Uuid::parse("01977430-1ec8-7002-8000-000000000003");

class InstanceMachineTest : public testing::Test {
 protected:
  InstanceActions give(const InstanceEvent& event) { return machine_.apply(kId, event, now_); }
  void pass(Duration duration) {
    now_.steady += duration;
    now_.boot += duration;
    now_.wall += std::chrono::duration_cast<milliseconds>(duration);
  }
  // Lets exactly the time pass that the machine waits for.
  InstanceActions give_time() {
    const std::optional<SteadyTime> at = machine_.wake_at(now_);
    EXPECT_TRUE(at);
    if (!at) return {};
    pass(*at - now_.steady);
    return give(TimePassed{});
  }
  void to_loading() {
    std::ignore = give(Launched{});
    std::ignore = give(Listening{});
  }
  void to_ready() {
    to_loading();
    std::ignore = give(BecameReady{});
  }
  static InstancePolicy policy() {
    InstancePolicy policy;
    policy.ttl = minutes(30);
    return policy;
  }

  Moment now_{SteadyTime(seconds(100)), BootTime(seconds(500)), WallTime(seconds(9000))};
  InstanceMachine machine_{kId, policy(), now_};
};

TEST_F(InstanceMachineTest, L1_TheWayToReady) {
  EXPECT_EQ(machine_.state(), State::kStarting);
  EXPECT_EQ(machine_.wanted().value, Wanted::kReady);
  EXPECT_EQ(machine_.job().value, InstanceJob::kLoad);
  EXPECT_THAT(give(Launched{}), IsEmpty());
  EXPECT_THAT(give(Listening{}), ElementsAre(Action::kConnect));
  EXPECT_EQ(machine_.state(), State::kLoading);
  pass(seconds(3));
  EXPECT_THAT(give(BecameReady{}), ElementsAre(Action::kReportReady));
  EXPECT_EQ(machine_.state(), State::kReady);
  EXPECT_EQ(machine_.job().value, InstanceJob::kNone);
  EXPECT_EQ(machine_.result().value, InstanceResult::kReady);
  EXPECT_EQ(machine_.result().since.steady, now_.steady);
  EXPECT_EQ(machine_.wanted().since.steady, machine_.created().steady);
}

TEST_F(InstanceMachineTest, L1_AnEventOfAnotherInstanceIsDropped) {
  to_loading();
  EXPECT_THAT(machine_.apply(kOther, BecameReady{}, now_), IsEmpty());
  EXPECT_THAT(machine_.apply(kOther, ProcessExited{Exited{1}}, now_), IsEmpty());
  EXPECT_THAT(machine_.apply(kOther, SaidLoadFailed{}, now_), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kLoading);
}

TEST_F(InstanceMachineTest, L1_LateCompletionsAreDropped) {
  to_loading();
  std::ignore = give(StopOrdered{StopCause::kUnload});
  EXPECT_THAT(give(BecameReady{}), IsEmpty());
  EXPECT_THAT(give(SaidLoadFailed{}), IsEmpty());
  EXPECT_THAT(give(Listening{}), IsEmpty());
  EXPECT_EQ(machine_.result().value, InstanceResult::kFailedInterrupted);
}

TEST_F(InstanceMachineTest, L2_ChargedUntilTheProcessIsGone) {
  EXPECT_TRUE(machine_.charged());
  to_ready();
  EXPECT_TRUE(machine_.charged());
  std::ignore = give(StopOrdered{StopCause::kUnload});
  EXPECT_TRUE(machine_.charged());
  std::ignore = give_time();  // SIGKILL
  std::ignore = give_time();
  EXPECT_EQ(machine_.state(), State::kStuck);
  EXPECT_TRUE(machine_.charged());
  EXPECT_FALSE(machine_.wake_at(now_)) << "nobody waits for a stuck one";
  EXPECT_THAT(give(ProcessExited{Signalled{9, false}}), ElementsAre(Action::kReportExited));
  EXPECT_FALSE(machine_.charged());
}

TEST_F(InstanceMachineTest, L2_AFailedLoadIsChargedUntilItsProcessIsGone) {
  to_loading();
  std::ignore = give(SaidLoadFailed{FailureClass::kPermanent, "bad magic"});
  std::ignore = give(LogCollected{});
  EXPECT_TRUE(machine_.charged());
  EXPECT_FALSE(machine_.finished());
  std::ignore = give(ProcessExited{Signalled{9, false}});
  EXPECT_EQ(machine_.state(), State::kFailed);
  EXPECT_FALSE(machine_.charged());
  EXPECT_TRUE(machine_.finished());
}

TEST_F(InstanceMachineTest, L3_LadderOfAReadyInstance) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  EXPECT_THAT(
      give(StopOrdered{StopCause::kForcedUnload}),
      ElementsAre(Action::kReportUnavailable, Action::kReportStopping, Action::kCancelInFlight));
  EXPECT_EQ(machine_.state(), State::kDraining);
  EXPECT_THAT(give_time(), ElementsAre(Action::kTerminate));
  EXPECT_EQ(machine_.state(), State::kStopping);
  EXPECT_EQ(machine_.wait()->what, "SIGTERM");
  EXPECT_EQ(machine_.wait()->until, now_.steady + seconds(10));
  EXPECT_THAT(give_time(), ElementsAre(Action::kKill));
  EXPECT_EQ(machine_.wait()->until, now_.steady + seconds(5));
  EXPECT_THAT(give_time(), ElementsAre(Action::kReportStuck));
  EXPECT_EQ(machine_.state(), State::kStuck);
  EXPECT_THAT(give(ProcessExited{Signalled{9, false}}), ElementsAre(Action::kReportExited));
  EXPECT_EQ(machine_.state(), State::kGone);
  EXPECT_EQ(machine_.result().value, InstanceResult::kStopped);
}

TEST_F(InstanceMachineTest, L3_CancelledWorkThatComesBackShortensTheWait) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  std::ignore = give(LeaseGranted{});
  std::ignore = give(StopOrdered{StopCause::kForcedUnload});
  EXPECT_THAT(give(LeaseReturned{true}), IsEmpty());
  EXPECT_THAT(give(LeaseReturned{true}), ElementsAre(Action::kTerminate));
}

TEST_F(InstanceMachineTest, L3_AnIdleInstanceGetsSigtermAtOnce) {
  to_ready();
  EXPECT_THAT(give(StopOrdered{StopCause::kUnload}),
              ElementsAre(Action::kReportUnavailable, Action::kReportStopping, Action::kTerminate));
}

TEST_F(InstanceMachineTest, L3_ALoadingInstanceGetsSigkillAtOnce) {
  for (const StopCause cause :
       {StopCause::kUnload, StopCause::kForcedUnload, StopCause::kShutdown, StopCause::kIdle}) {
    InstanceMachine machine(kId, policy(), now_);
    std::ignore = machine.apply(kId, Launched{}, now_);
    const InstanceActions actions = machine.apply(kId, StopOrdered{cause}, now_);
    EXPECT_THAT(actions, Contains(Action::kKill));
    EXPECT_THAT(actions, Not(Contains(Action::kTerminate)));
  }
}

TEST_F(InstanceMachineTest, L3_WithoutAProcessThereIsNothingToStop) {
  EXPECT_THAT(give(StopOrdered{StopCause::kUnload}),
              ElementsAre(Action::kReportUnavailable, Action::kReportInterrupted));
  EXPECT_TRUE(machine_.finished());
  EXPECT_EQ(machine_.result().value, InstanceResult::kFailedInterrupted);
  EXPECT_THAT(give(NotLaunched{}), IsEmpty());
}

TEST_F(InstanceMachineTest, L3_ASecondOrderChangesNothing) {
  to_ready();
  std::ignore = give(StopOrdered{StopCause::kIdle});
  EXPECT_THAT(give(StopOrdered{StopCause::kShutdown}), IsEmpty());
  EXPECT_THAT(give(CloseOrdered{StopCause::kShutdown, now_.steady}), IsEmpty());
  EXPECT_EQ(machine_.cause(), StopCause::kIdle);
}

TEST_F(InstanceMachineTest, L7_AnExitEndsTheWait) {
  to_loading();
  EXPECT_THAT(give(ProcessExited{Exited{1}}),
              ElementsAre(Action::kReportUnavailable, Action::kReportExited, Action::kCollectLog));
  EXPECT_EQ(machine_.state(), State::kFailed);
  EXPECT_FALSE(machine_.finished()) << "its evidence is awaited";
  EXPECT_THAT(give(LogCollected{}), IsEmpty());
  EXPECT_THAT(give(Disconnected{}), ElementsAre(Action::kReportFailed));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kUnclassified);
  EXPECT_EQ(failure_sentence(*machine_.failure()), "exit 1");
  EXPECT_TRUE(machine_.finished());
}

TEST_F(InstanceMachineTest, L7_AnExitBeforeItListensNeedsNoStream) {
  std::ignore = give(Launched{});
  std::ignore = give(ProcessExited{Signalled{11, false}});
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
}

TEST_F(InstanceMachineTest, L7_LastWordsThatArriveAfterTheExitStillNameTheCause) {
  to_loading();
  std::ignore = give(ProcessExited{Exited{1}});
  std::ignore = give(LogCollected{});
  EXPECT_THAT(give(SaidLoadFailed{FailureClass::kPermanent, "bad magic"}),
              ElementsAre(Action::kReportFailed));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kPermanent);
  EXPECT_EQ(failure_sentence(*machine_.failure()), "exit 1: bad magic");
}

TEST_F(InstanceMachineTest, L7_EvidenceIsAwaitedForASecondAtMost) {
  to_loading();
  std::ignore = give(ProcessExited{Exited{1}});
  const SteadyTime failed = now_.steady;
  EXPECT_THAT(give_time(), ElementsAre(Action::kReportFailed));
  EXPECT_EQ(now_.steady, failed + seconds(1));
}

TEST_F(InstanceMachineTest, L7_ATypedFailureEndsTheWait) {
  to_loading();
  EXPECT_THAT(give(SaidLoadFailed{FailureClass::kResource, "no memory"}),
              ElementsAre(Action::kReportUnavailable, Action::kKill, Action::kReportStopping,
                          Action::kCollectLog));
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
  EXPECT_EQ(machine_.result().value, InstanceResult::kFailedOwn);
  EXPECT_FALSE(machine_.failure()->status) << "a signal that we sent is no cause (L20)";
  EXPECT_THAT(give(ProcessExited{Signalled{9, false}}), ElementsAre(Action::kReportExited));
}

TEST_F(InstanceMachineTest, L7_LoadTimeoutEndsTheWait) {
  to_loading();
  const InstanceActions actions = give_time();
  EXPECT_EQ(now_.steady, machine_.created().steady + minutes(30));
  EXPECT_THAT(actions, Contains(Action::kKill));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kTimeout);
  EXPECT_EQ(machine_.failure()->reason, "it was not ready within 30 min");
}

TEST_F(InstanceMachineTest, L7_ALaunchThatIsNeverPreparedTimesOutToo) {
  EXPECT_THAT(give_time(), ElementsAre(Action::kReportUnavailable, Action::kReportFailed));
  EXPECT_TRUE(machine_.finished());
}

TEST_F(InstanceMachineTest, L7_ALaunchFailureIsKnownAtOnce) {
  EXPECT_THAT(give(NotLaunched{{FailureClass::kLaunch, "execve: no such file", std::nullopt}}),
              ElementsAre(Action::kReportUnavailable, Action::kReportFailed));
  EXPECT_EQ(machine_.result().value, InstanceResult::kFailedLaunch);
  EXPECT_FALSE(machine_.charged());
}

TEST_F(InstanceMachineTest, L7_AStreamThatEndsIsNoEvidenceButIsNotAwaitedForEver) {
  to_loading();
  EXPECT_THAT(give(Disconnected{}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kLoading);
  const SteadyTime ended = now_.steady;
  EXPECT_THAT(give_time(), Contains(Action::kKill));
  EXPECT_EQ(now_.steady, ended + seconds(5));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kUnclassified);
}

TEST_F(InstanceMachineTest, L9_ADeathFailsWhatIsInFlightAtOnce) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  EXPECT_THAT(give(ProcessExited{Signalled{11, true}}),
              ElementsAre(Action::kCancelInFlight, Action::kReportUnavailable, Action::kReportDied,
                          Action::kReportExited));
  EXPECT_EQ(machine_.result().value, InstanceResult::kDied);
  EXPECT_EQ(machine_.state(), State::kGone);
}

TEST_F(InstanceMachineTest, L9_AReadyWorkerWithoutItsStreamIsStopped) {
  to_ready();
  std::ignore = give(Disconnected{});
  EXPECT_EQ(machine_.state(), State::kReady);
  const InstanceActions actions = give_time();
  EXPECT_THAT(actions, Contains(Action::kTerminate));
  EXPECT_THAT(actions, Contains(Action::kReportDied));
  EXPECT_EQ(machine_.result().value, InstanceResult::kDied);
  EXPECT_THAT(give(ProcessExited{Exited{0}}), ElementsAre(Action::kReportExited));
  EXPECT_EQ(machine_.result().value, InstanceResult::kDied);
}

TEST_F(InstanceMachineTest, L29_ClosingFinishesWhatRuns) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  EXPECT_THAT(give(CloseOrdered{StopCause::kShutdown, now_.steady + seconds(30)}),
              ElementsAre(Action::kReportUnavailable));
  EXPECT_EQ(machine_.state(), State::kClosing);
  EXPECT_FALSE(machine_.takes_leases());
  pass(seconds(4));
  EXPECT_THAT(give(LeaseReturned{true}), ElementsAre(Action::kReportStopping, Action::kTerminate));
}

TEST_F(InstanceMachineTest, L29_ClosingEndsWhatRunsAfterItsTime) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  const SteadyTime until = now_.steady + seconds(30);
  std::ignore = give(CloseOrdered{StopCause::kShutdown, until});
  EXPECT_THAT(give_time(), ElementsAre(Action::kReportStopping, Action::kCancelInFlight));
  EXPECT_EQ(now_.steady, until);
}

TEST_F(InstanceMachineTest, L29_ASecondCloseOnlyShortens) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  std::ignore = give(CloseOrdered{StopCause::kShutdown, now_.steady + seconds(30)});
  std::ignore = give(CloseOrdered{StopCause::kShutdown, now_.steady + seconds(60)});
  EXPECT_EQ(machine_.wait()->until, now_.steady + seconds(30));
  std::ignore = give(CloseOrdered{StopCause::kShutdown, now_.steady + seconds(5)});
  EXPECT_EQ(machine_.wait()->until, now_.steady + seconds(5));
}

TEST_F(InstanceMachineTest, M9_WhatClosesMayServeAgain) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  std::ignore = give(CloseOrdered{StopCause::kEvicted, now_.steady + seconds(30)});
  EXPECT_THAT(give(ReopenOrdered{}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kBusy);
  EXPECT_TRUE(machine_.takes_leases());
  EXPECT_EQ(machine_.wanted().value, Wanted::kReady);
  EXPECT_EQ(machine_.job().value, InstanceJob::kNone);
  EXPECT_EQ(machine_.cause(), StopCause::kNone);
  EXPECT_FALSE(machine_.wait()) << "what runs has no bound any more";
  EXPECT_THAT(give(LeaseReturned{true}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kReady);
}

TEST_F(InstanceMachineTest, M9_WhatIsBeingStoppedDoesNotServeAgain) {
  to_ready();
  std::ignore = give(StopOrdered{StopCause::kEvicted});
  EXPECT_THAT(give(ReopenOrdered{}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kStopping);
}

TEST_F(InstanceMachineTest, M15_IdleFromTheFirstReady) {
  to_ready();
  EXPECT_EQ(machine_.ttl_left(now_), minutes(30));
  pass(minutes(30) - seconds(1));
  EXPECT_THAT(give(TimePassed{}), IsEmpty());
  pass(seconds(1));
  EXPECT_THAT(give(TimePassed{}), Contains(Action::kTerminate));
  EXPECT_EQ(machine_.cause(), StopCause::kIdle);
}

TEST_F(InstanceMachineTest, M15_OnlyTheEndOfAClientsWorkCounts) {
  to_ready();
  std::ignore = give(LeaseGranted{});
  pass(minutes(10));
  EXPECT_FALSE(machine_.ttl_left(now_)) << "busy";
  std::ignore = give(LeaseReturned{true});
  EXPECT_EQ(machine_.ttl_left(now_), minutes(30));
  pass(minutes(10));
  std::ignore = give(LeaseGranted{});
  std::ignore = give(LeaseReturned{false});
  EXPECT_EQ(machine_.ttl_left(now_), minutes(20)) << "idle work keeps nothing alive";
}

TEST_F(InstanceMachineTest, M15_ASuspendedMachineAges) {
  to_ready();
  now_.boot += minutes(29) + seconds(30);
  const std::optional<SteadyTime> wake = machine_.wake_at(now_);
  ASSERT_TRUE(wake);
  EXPECT_EQ(*wake, now_.steady + seconds(30));
  now_.boot += minutes(1);
  EXPECT_THAT(give(TimePassed{}), Contains(Action::kTerminate));
}

TEST_F(InstanceMachineTest, M15_LooksAtTheBootClockOnceAMinute) {
  to_ready();
  EXPECT_EQ(machine_.wake_at(now_), now_.steady + minutes(1));
}

TEST_F(InstanceMachineTest, M15_ZeroIsNever) {
  InstancePolicy never = policy();
  never.ttl = Duration::zero();
  InstanceMachine machine(kId, never, now_);
  std::ignore = machine.apply(kId, Launched{}, now_);
  std::ignore = machine.apply(kId, Listening{}, now_);
  std::ignore = machine.apply(kId, BecameReady{}, now_);
  EXPECT_FALSE(machine.wake_at(now_));
}

TEST_F(InstanceMachineTest, T19_ALeaseIsNeverGrantedOnceTheStopHasBegun) {
  to_ready();
  std::ignore = give(StopOrdered{StopCause::kIdle});
  EXPECT_FALSE(machine_.takes_leases());
  std::ignore = give(LeaseGranted{});
  EXPECT_EQ(machine_.leases(), 0U);
}

TEST_F(InstanceMachineTest, L7_AFatalLineInTheLogFailsTheLoadAtOnce) {
  const LogJudged line{FailureClass::kPermanent, "ValueError: no"};
  EXPECT_THAT(give(line), IsEmpty()) << "there is no process yet";
  std::ignore = give(Launched{});
  EXPECT_THAT(give(line), ElementsAre(Action::kReportUnavailable, Action::kKill,
                                      Action::kReportStopping, Action::kCollectLog))
      << "also before it listens";
  EXPECT_EQ(machine_.cause(), StopCause::kLoadFailed);
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
  EXPECT_THAT(give(SaidLoadFailed{FailureClass::kResource, "late"}), IsEmpty());
  std::ignore = give(ProcessExited{Signalled{9, false}});
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kPermanent);
  EXPECT_EQ(machine_.failure()->reason, "ValueError: no");
  EXPECT_FALSE(machine_.failure()->status) << "our signal is no cause of death (L20)";
}

TEST_F(InstanceMachineTest, L21_TheLineOfALogSaysWhyAProcessDied) {
  to_loading();
  std::ignore = give(ProcessExited{Signalled{6, false}});
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kUnclassified) << "crash needs a line";
  EXPECT_THAT(give(LogJudged{FailureClass::kCrash, "GGML_ASSERT(x) failed"}), IsEmpty());
  std::ignore = give(Disconnected{});
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kCrash);
  EXPECT_EQ(machine_.failure()->reason, "GGML_ASSERT(x) failed");
  EXPECT_EQ(machine_.failure()->status, ExitStatus(Signalled{6, false}));
}

TEST_F(InstanceMachineTest, L20_ACrashThatTheLogToldOfKeepsItsOwnSignal) {
  to_loading();
  std::ignore = give(LogJudged{FailureClass::kCrash, "GGML_ASSERT(x) failed"});
  std::ignore = give(ProcessExited{Signalled{6, false}});
  EXPECT_EQ(machine_.failure()->status, ExitStatus(Signalled{6, false}));
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
}

TEST_F(InstanceMachineTest, L20_ACrashThatWeEndedHasNoSignal) {
  to_loading();
  std::ignore = give(LogJudged{FailureClass::kCrash, "GGML_ASSERT(x) failed"});
  std::ignore = give(ProcessExited{Signalled{9, false}});
  EXPECT_FALSE(machine_.failure()->status);
}

TEST_F(InstanceMachineTest, L9_OomIsWhatTheKernelProves) {
  to_loading();
  std::ignore = give(ProcessExited{Signalled{9, false}});
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kUnclassified);
  EXPECT_EQ(machine_.failure()->status, ExitStatus(Signalled{9, false}));
  EXPECT_THAT(give(OomProven{}), IsEmpty());
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kOom);
  std::ignore = give(Disconnected{});
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kOom);
}

TEST_F(InstanceMachineTest, L9_AWorkersWordForOomProvesNothing) {
  to_loading();
  std::ignore = give(SaidLoadFailed{FailureClass::kOom, "no memory"});
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kUnclassified);
  EXPECT_EQ(machine_.failure()->reason, "no memory");
}

TEST_F(InstanceMachineTest, L20_TheSignalThatEndsAWedgedWorkerIsNotItsOwn) {
  to_ready();
  std::ignore = give(Wedged{});
  std::ignore = give(ProcessExited{Signalled{15, false}});
  EXPECT_EQ(machine_.result().value, InstanceResult::kDied);
  EXPECT_FALSE(machine_.died_by_itself());
  EXPECT_FALSE(machine_.own_exit());
  EXPECT_EQ(machine_.exit_status(), ExitStatus(Signalled{15, false}));
}

TEST_F(InstanceMachineTest, L20_ADeathThatNobodyOrderedIsItsOwn) {
  to_ready();
  std::ignore = give(ProcessExited{Signalled{9, false}});
  EXPECT_TRUE(machine_.died_by_itself());
  EXPECT_EQ(machine_.own_exit(), ExitStatus(Signalled{9, false}));
}

TEST_F(InstanceMachineTest, L7_OfTheWorkersWordAndItsLogsTheFirstStands) {
  to_loading();
  std::ignore = give(ProcessExited{Exited{1}});
  std::ignore = give(SaidLoadFailed{FailureClass::kPermanent, "bad magic"});
  std::ignore = give(LogJudged{FailureClass::kCrash, "late"});
  EXPECT_EQ(machine_.failure()->reason, "bad magic");
  std::ignore = give(LogCollected{});
  std::ignore = give(LogJudged{FailureClass::kCrash, "later"});
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kPermanent);
}

TEST_F(InstanceMachineTest, L15_AfterReadyTheLogIsNoVerdict) {
  to_ready();
  EXPECT_THAT(give(LogJudged{FailureClass::kCrash, "GGML_ASSERT(x) failed"}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kReady);
}

TEST_F(InstanceMachineTest, L8_AStalledLoadIsKilledAndFailsByItself) {
  to_loading();
  EXPECT_THAT(give(Stalled{"nothing moved for 1 min"}),
              ElementsAre(Action::kReportUnavailable, Action::kKill, Action::kReportStopping,
                          Action::kCollectLog));
  EXPECT_EQ(machine_.cause(), StopCause::kStalled);
  EXPECT_THAT(give(LogCollected{}), ElementsAre(Action::kReportFailed));
  ASSERT_TRUE(machine_.failure());
  EXPECT_EQ(machine_.failure()->failure_class, FailureClass::kStalled);
  EXPECT_EQ(machine_.failure()->reason, "nothing moved for 1 min");
  EXPECT_EQ(machine_.failure()->status, std::nullopt);
  EXPECT_THAT(give(ProcessExited{Signalled{9, false}}), ElementsAre(Action::kReportExited));
  EXPECT_EQ(machine_.state(), State::kFailed);
}

TEST_F(InstanceMachineTest, L8_StallsBeforeItListensToo) {
  EXPECT_THAT(give(Stalled{"x"}), IsEmpty()) << "there is no process yet";
  std::ignore = give(Launched{});
  EXPECT_THAT(give(Stalled{"x"}), Contains(Action::kKill));
}

TEST_F(InstanceMachineTest, L8_AReadyWorkerDoesNotStall) {
  to_ready();
  EXPECT_THAT(give(Stalled{"late"}), IsEmpty());
  EXPECT_EQ(machine_.state(), State::kReady);
}

TEST_F(InstanceMachineTest, L9_AWedgedWorkerIsStoppedAndCountsAsDead) {
  to_loading();
  EXPECT_THAT(give(Wedged{}), IsEmpty());
  std::ignore = give(BecameReady{});
  std::ignore = give(LeaseGranted{});
  EXPECT_THAT(give(Wedged{}), ElementsAre(Action::kReportUnavailable, Action::kReportStopping,
                                          Action::kCancelInFlight, Action::kReportDied));
  EXPECT_EQ(machine_.cause(), StopCause::kWedged);
  EXPECT_EQ(machine_.result().value, InstanceResult::kDied);
  EXPECT_THAT(give_time(), ElementsAre(Action::kTerminate));
  EXPECT_THAT(give_time(), ElementsAre(Action::kKill));
  EXPECT_THAT(give(Wedged{}), IsEmpty());
  EXPECT_THAT(give(ProcessExited{Signalled{9, false}}), ElementsAre(Action::kReportExited));
  EXPECT_EQ(machine_.state(), State::kGone);
}

}  // namespace
}  // namespace berth::core
