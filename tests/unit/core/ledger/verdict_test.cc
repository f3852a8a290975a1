#include "supervisor/core/ledger/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::core {
namespace {

TEST(Verdict, L20_WhatWeEndedLeavesNoMark) {
  for (const StopCause cause :
       {StopCause::kUnload, StopCause::kForcedUnload, StopCause::kIdle, StopCause::kShutdown}) {
    EXPECT_FALSE(failed_by_itself(cause)) << stop_cause_name(cause);
  }
  for (const StopCause cause : {StopCause::kNone, StopCause::kLoadFailed, StopCause::kLoadTimeout,
                                StopCause::kDisconnected}) {
    EXPECT_TRUE(failed_by_itself(cause)) << stop_cause_name(cause);
  }
}

TEST(Verdict, L20_OurSignalIsNeverTheCauseOfDeath) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const ExitStatus exit = Signalled{signal};
    EXPECT_FALSE(own_exit(StopCause::kLoadFailed, exit));
    EXPECT_FALSE(own_exit(StopCause::kLoadTimeout, exit));
    EXPECT_FALSE(own_exit(StopCause::kDisconnected, exit));
    // From outside: nobody here ordered anything.
    EXPECT_EQ(own_exit(StopCause::kNone, exit), exit);
  }
  // It got there before our signal did.
  EXPECT_EQ(own_exit(StopCause::kLoadFailed, Exited{3}), ExitStatus(Exited{3}));
  EXPECT_EQ(own_exit(StopCause::kLoadFailed, Signalled{SIGSEGV}), ExitStatus(Signalled{SIGSEGV}));
  EXPECT_FALSE(own_exit(StopCause::kNone, std::nullopt));
}

TEST(Verdict, L21_CrashNeedsALine) {
  DeathEvidence evidence;
  evidence.exit = Signalled{SIGSEGV, true};
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  EXPECT_EQ(judge(evidence).status, evidence.exit);
  evidence.said = FailureClass::kCrash;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  evidence.reason = "GGML_ASSERT(n > 0) failed";
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kCrash);
  EXPECT_EQ(judge(evidence).reason, evidence.reason);
}

TEST(Verdict, L9_OomNeedsItsProof) {
  DeathEvidence evidence;
  evidence.exit = Signalled{SIGKILL};
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  evidence.said = FailureClass::kOom;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  evidence.oom_proven = true;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kOom);
  evidence.said = FailureClass::kPermanent;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kOom);
}

TEST(Verdict, L21_WhatWasSaidDecidesOtherwise) {
  DeathEvidence evidence;
  evidence.cause = StopCause::kLoadFailed;
  evidence.exit = Signalled{SIGKILL};
  evidence.said = FailureClass::kPermanent;
  evidence.reason = "unknown model architecture: 'x'";
  const LoadFailure failure = judge(evidence);
  EXPECT_EQ(failure.failure_class, FailureClass::kPermanent);
  EXPECT_FALSE(failure.status);
}

}  // namespace
}  // namespace berth::core
