#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/ledger/failure_record.h"

namespace berth::residency {

// What is known of an instance when it must be explained to a client.
struct InstanceFacts {
  std::string model;
  std::string instance_id;
  WallTime since{};
  std::vector<std::string> command;   // for admins
  std::vector<std::string> log_tail;  // for admins
  std::string standstill{};           // why it counts as wedged
};

// "demo could not be loaded: exit 1: …" with the evidence as extras (kLoadFailed).
Error load_failed_error(const core::LoadFailure& failure, const InstanceFacts& facts);

// Why a request for the model is refused at once (kLoadFailed): the reason, the class, the record,
// since when, and the way out (L22).
Error standing_failure_error(const core::FailureRecord& record);

// The failure of an error that prepare_launch or the launcher gave.
core::LoadFailure launch_failure(const Error& error);

// "The worker of demo ended: SIGSEGV. …" (kWorkerDied). `exit` absent: its process still lives.
Error worker_died_error(const std::optional<core::ExitStatus>& exit, const InstanceFacts& facts);

// What a request is told whose instance was stopped by us: kShuttingDown, kConflict, or kWorkerDied
// for a cause that lies in the worker.
Error stopped_error(core::StopCause cause, const InstanceFacts& facts);

}  // namespace berth::residency
