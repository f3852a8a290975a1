#include "supervisor/core/ledger/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

namespace berth::core {
namespace {

constexpr SentSignals kNothing{};
constexpr SentSignals kTerm{.term = true};
constexpr SentSignals kKill{.kill = true};
constexpr SentSignals kBoth{.term = true, .kill = true};

TEST(Verdict, L20_OurSignalIsNeverTheCauseOfDeath) {
  EXPECT_FALSE(own_exit(kTerm, Signalled{SIGTERM}));
  EXPECT_FALSE(own_exit(kKill, Signalled{SIGKILL}));
  EXPECT_FALSE(own_exit(kBoth, Signalled{SIGTERM}));
  EXPECT_FALSE(own_exit(kBoth, Signalled{SIGKILL}));
  EXPECT_FALSE(own_exit(kTerm, Exited{0})) << "that is how a worker obeys";
}

TEST(Verdict, L20_WhatWeDidNotSendIsItsOwn) {
  for (const int signal : {SIGTERM, SIGKILL, SIGSEGV}) {
    EXPECT_EQ(own_exit(kNothing, Signalled{signal}), ExitStatus(Signalled{signal}));
  }
  EXPECT_EQ(own_exit(kTerm, Signalled{SIGKILL}), ExitStatus(Signalled{SIGKILL}));
  EXPECT_EQ(own_exit(kBoth, Signalled{SIGSEGV}), ExitStatus(Signalled{SIGSEGV}));
  EXPECT_EQ(own_exit(kKill, Exited{3}), ExitStatus(Exited{3})) << "it was gone before";
  EXPECT_FALSE(own_exit(kNothing, std::nullopt));
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

TEST(Verdict, L9_L21_OomNeedsItsProof) {
  DeathEvidence evidence;
  evidence.exit = Signalled{SIGKILL};
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  EXPECT_EQ(judge(evidence).status, evidence.exit);
  evidence.said = FailureClass::kOom;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kUnclassified);
  evidence.oom_proven = true;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kOom);
  EXPECT_EQ(judge(evidence).status, evidence.exit);
  evidence.said = FailureClass::kPermanent;
  EXPECT_EQ(judge(evidence).failure_class, FailureClass::kOom);
}

TEST(Verdict, L21_ALineKeepsItsClassWhereTheKernelKilledAnotherProcessOfIt) {
  DeathEvidence evidence;
  evidence.oom_proven = true;
  evidence.reason = "a line";
  for (const ExitStatus& exit : {ExitStatus(Exited{1}), ExitStatus(Signalled{SIGABRT})}) {
    evidence.exit = exit;
    for (const auto said : {FailureClass::kPermanent, FailureClass::kResource, FailureClass::kCrash,
                            FailureClass::kLaunch}) {
      evidence.said = said;
      EXPECT_EQ(judge(evidence).failure_class, said);
    }
    for (const auto said : {FailureClass::kCrashLoop, FailureClass::kUnclassified}) {
      evidence.said = said;
      EXPECT_EQ(judge(evidence).failure_class, FailureClass::kOom);
    }
  }
}

TEST(Verdict, L21_WhatWasSaidDecidesOtherwise) {
  DeathEvidence evidence;
  evidence.sent = kKill;
  evidence.exit = Signalled{SIGKILL};
  evidence.said = FailureClass::kPermanent;
  evidence.reason = "unknown model architecture: 'x'";
  const LoadFailure failure = judge(evidence);
  EXPECT_EQ(failure.failure_class, FailureClass::kPermanent);
  EXPECT_FALSE(failure.status);
}

TEST(Verdict, L20_OfAProcessThatWeEndedTheExitTellsOnlyMoreOfACrash) {
  DeathEvidence evidence;
  evidence.sent = kKill;
  evidence.exit = Exited{1};
  evidence.said = FailureClass::kStalled;
  evidence.reason = "nothing moved";
  EXPECT_FALSE(judge(evidence).status);
  evidence.said = FailureClass::kCrash;
  EXPECT_EQ(judge(evidence).status, evidence.exit);
}

}  // namespace
}  // namespace berth::core
