#include "supervisor/residency/evidence.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "common/result.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/ledger/failure_record.h"

namespace berth::residency {
namespace {

TEST(Evidence, TheClassOfAPreparedLaunchsErrorIsKept) {
  FailureEvidence evidence;
  evidence.failure_class = "permanent";
  ErrorExtras extras;
  extras.failure = evidence;
  const core::LoadFailure failure =
      launch_failure(Error(Reason::kLoadFailed, "no such shard", std::move(extras)));
  EXPECT_EQ(failure.failure_class, core::FailureClass::kPermanent);
  EXPECT_EQ(launch_failure(Error(Reason::kLoadFailed, "clone3: EAGAIN")).failure_class,
            core::FailureClass::kLaunch);
}

TEST(Evidence, L18_AReasonHasAtMost512BytesAndNoPath) {
  const core::LoadFailure failure =
      launch_failure(Error(Reason::kLoadFailed, "open /home/eva/x: " + std::string(1000, 'x')));
  EXPECT_LE(failure.reason.size(), 512U);
  EXPECT_EQ(failure.reason.find("eva"), std::string::npos);
}

TEST(Evidence, L22_AReasonThatIsASentenceEndsOnce) {
  core::FailureRecord record;
  record.model = "demo";
  record.failure_class = core::FailureClass::kPermanent;
  for (const char* const reason : {"Model type zebra not supported.", "bad magic"}) {
    record.reason = reason;
    const std::string message = standing_failure_error(record).message;
    EXPECT_EQ(message.find(".."), std::string::npos) << message;
    EXPECT_NE(message.find(". Another file"), std::string::npos) << message;
  }
}

TEST(Evidence, AStopIsExplainedByWhoOrderedIt) {
  InstanceFacts facts;
  facts.model = "demo";
  EXPECT_EQ(stopped_error(core::StopCause::kShutdown, facts).reason, Reason::kShuttingDown);
  EXPECT_EQ(stopped_error(core::StopCause::kForcedUnload, facts).reason, Reason::kConflict);
  EXPECT_EQ(stopped_error(core::StopCause::kDisconnected, facts).reason, Reason::kWorkerDied);
  EXPECT_EQ(worker_died_error(std::nullopt, facts).reason, Reason::kWorkerDied);
}

}  // namespace
}  // namespace berth::residency
