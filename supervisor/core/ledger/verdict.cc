#include "supervisor/core/ledger/verdict.h"

#include <csignal>
#include <variant>

namespace berth::core {

bool failed_by_itself(StopCause cause) {
  switch (cause) {
    case StopCause::kNone:
    case StopCause::kLoadFailed:
    case StopCause::kLoadTimeout:
    case StopCause::kDisconnected:
    case StopCause::kStalled:
    case StopCause::kWedged:
      return true;
    case StopCause::kUnload:
    case StopCause::kForcedUnload:
    case StopCause::kIdle:
    case StopCause::kShutdown:
      return false;
  }
  return false;
}

std::optional<ExitStatus> own_exit(StopCause cause, const std::optional<ExitStatus>& exit) {
  if (cause == StopCause::kNone || !exit) return exit;
  const auto* signalled = std::get_if<Signalled>(&*exit);
  if (signalled && (signalled->signal == SIGTERM || signalled->signal == SIGKILL)) {
    return std::nullopt;
  }
  return exit;
}

LoadFailure judge(const DeathEvidence& evidence) {
  LoadFailure failure;
  failure.reason = evidence.reason;
  failure.status = own_exit(evidence.cause, evidence.exit);
  if (evidence.oom_proven) {
    failure.failure_class = FailureClass::kOom;
    return failure;
  }
  failure.failure_class = evidence.said.value_or(FailureClass::kUnclassified);
  const bool crash_without_line =
      failure.failure_class == FailureClass::kCrash && evidence.reason.empty();
  if (crash_without_line || failure.failure_class == FailureClass::kOom) {
    failure.failure_class = FailureClass::kUnclassified;
  }
  return failure;
}

}  // namespace berth::core
