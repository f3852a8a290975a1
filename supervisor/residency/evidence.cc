#include "supervisor/residency/evidence.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/result.h"
#include "common/wall_time.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/redact.h"

namespace berth::residency {
namespace {

constexpr std::size_t kReasonBytes = 512;

void add_exit(const std::optional<core::ExitStatus>& exit, FailureEvidence& evidence) {
  if (!exit) return;
  if (const auto* exited = std::get_if<core::Exited>(&*exit)) evidence.exit_code = exited->code;
  if (const auto* signalled = std::get_if<core::Signalled>(&*exit)) {
    evidence.signal = core::signal_name(signalled->signal);
  }
}

// A reason is what a program wrote, with a full stop or without.
void end_sentence(std::string& text) {
  if (!text.ends_with('.')) text += '.';
}

FailureEvidence evidence_of(const InstanceFacts& facts) {
  FailureEvidence evidence;
  evidence.id = facts.instance_id;
  evidence.instance_id = facts.instance_id;
  evidence.since_unix_ms = facts.since.time_since_epoch().count();
  evidence.command = facts.command;
  evidence.log_tail = facts.log_tail;
  return evidence;
}

Error wedged_error(const InstanceFacts& facts) {
  FailureEvidence evidence = evidence_of(facts);
  evidence.failure_class = core::failure_class_name(core::FailureClass::kStalled);
  evidence.reason = facts.standstill;
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kWorkerDied,
          "The worker of " + facts.model + " was stopped: " + facts.standstill +
              ". The next request starts it again.",
          std::move(extras)};
}

}  // namespace

Error load_failed_error(const core::LoadFailure& failure, const InstanceFacts& facts) {
  FailureEvidence evidence = evidence_of(facts);
  evidence.failure_class = core::failure_class_name(failure.failure_class);
  evidence.reason = core::failure_sentence(failure);
  add_exit(failure.status, evidence);

  std::string message = facts.model + " could not be loaded: " + evidence.reason;
  if (failure.reason.empty()) {
    message += ": its worker ended before the model was ready; `berth logs " + facts.model +
               "` shows what it wrote";
  }
  end_sentence(message);
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kLoadFailed, std::move(message), std::move(extras)};
}

Error standing_failure_error(const core::FailureRecord& record) {
  FailureEvidence evidence;
  evidence.id = record.id.to_string();
  evidence.failure_class = core::failure_class_name(record.failure_class);
  evidence.reason = core::failure_sentence(record);
  evidence.since_unix_ms = record.ended.time_since_epoch().count();
  evidence.instance_id = record.instance.to_string();
  evidence.log_tail = record.log_tail;
  evidence.command = record.command;
  add_exit(record.exit, evidence);
  std::string message = record.model + " could not be loaded at " + format_utc(record.ended) +
                        " and is not tried again: " + evidence.reason;
  end_sentence(message);
  message += " " + core::way_out(record) + " `berth why " + record.model + "` tells more.";
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kLoadFailed, std::move(message), std::move(extras)};
}

core::LoadFailure launch_failure(const Error& error) {
  core::LoadFailure failure;
  failure.failure_class = core::FailureClass::kLaunch;
  failure.reason = core::carried_text(error.message, kReasonBytes);
  if (error.extras && error.extras->failure && !error.extras->failure->failure_class.empty()) {
    failure.failure_class = core::failure_class_from_name(error.extras->failure->failure_class);
  }
  return failure;
}

Error worker_died_error(const std::optional<core::ExitStatus>& exit, const InstanceFacts& facts) {
  FailureEvidence evidence = evidence_of(facts);
  evidence.failure_class = core::failure_class_name(core::FailureClass::kUnclassified);
  std::string message;
  if (exit) {
    evidence.reason = core::to_string(*exit);
    message = "The worker of " + facts.model + " ended: " + evidence.reason +
              ". The next request starts it again.";
  } else {
    evidence.reason = "the connection broke and the process did not end";
    message = "The connection to the worker of " + facts.model + " broke.";
  }
  add_exit(exit, evidence);
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kWorkerDied, std::move(message), std::move(extras)};
}

Error stopped_error(core::StopCause cause, const InstanceFacts& facts) {
  switch (cause) {
    case core::StopCause::kShutdown:
      return {Reason::kShuttingDown, "The server is stopping."};
    case core::StopCause::kUnload:
    case core::StopCause::kForcedUnload:
      return {Reason::kConflict, facts.model + " was unloaded by force."};
    case core::StopCause::kNone:
    case core::StopCause::kIdle:
    case core::StopCause::kLoadFailed:
    case core::StopCause::kLoadTimeout:
    case core::StopCause::kDisconnected:
    case core::StopCause::kStalled:
      break;
    case core::StopCause::kJobEnded:
      break;
    case core::StopCause::kEvicted:
      return {Reason::kDraining, "Another model needs the memory of " + facts.model +
                                     ", which was stopped for it; ask again."};
    case core::StopCause::kWedged:
      return wedged_error(facts);
  }
  return worker_died_error(std::nullopt, facts);
}

}  // namespace berth::residency
