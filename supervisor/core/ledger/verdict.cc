#include "supervisor/core/ledger/verdict.h"

#include <csignal>
#include <variant>

namespace berth::core {

std::optional<ExitStatus> own_exit(const SentSignals& sent, const std::optional<ExitStatus>& exit) {
  if (!exit || !sent.any()) return exit;
  if (std::holds_alternative<Exited>(*exit) && sent.term) return std::nullopt;
  const auto* signalled = std::get_if<Signalled>(&*exit);
  if (signalled && sent.term && signalled->signal == SIGTERM) return std::nullopt;
  if (signalled && sent.kill && signalled->signal == SIGKILL) return std::nullopt;
  return exit;
}

namespace {

// A program that says what is wrong and ends by itself did not end for a helper that was killed.
bool explained_otherwise(const DeathEvidence& evidence) {
  const auto* signalled = evidence.exit ? std::get_if<Signalled>(&*evidence.exit) : nullptr;
  if (signalled != nullptr && signalled->signal == SIGKILL) return false;
  if (!evidence.said || evidence.reason.empty()) return false;
  switch (*evidence.said) {
    case FailureClass::kPermanent:
    case FailureClass::kResource:
    case FailureClass::kCrash:
    case FailureClass::kLaunch:
      return true;
    case FailureClass::kOom:
    case FailureClass::kCrashLoop:
    case FailureClass::kStalled:
    case FailureClass::kTimeout:
    case FailureClass::kUnclassified:
      break;
  }
  return false;
}

}  // namespace

LoadFailure judge(const DeathEvidence& evidence) {
  LoadFailure failure;
  failure.reason = evidence.reason;
  failure.status = own_exit(evidence.sent, evidence.exit);
  if (evidence.oom_proven && !explained_otherwise(evidence)) {
    failure.failure_class = FailureClass::kOom;
    return failure;
  }
  failure.failure_class = evidence.said.value_or(FailureClass::kUnclassified);
  const bool crash_without_line =
      failure.failure_class == FailureClass::kCrash && evidence.reason.empty();
  if (crash_without_line || failure.failure_class == FailureClass::kOom) {
    failure.failure_class = FailureClass::kUnclassified;
  }
  if (evidence.sent.any() && failure.failure_class != FailureClass::kCrash) failure.status.reset();
  return failure;
}

}  // namespace berth::core
