#pragma once

#include <optional>
#include <string>

#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_state.h"

namespace berth::core {

// Whether a load that did not become ready failed by itself, so that it is recorded; otherwise we
// ended it, and it leaves no mark (L20). `cause`: of the order to stop, kNone where there was none.
bool failed_by_itself(StopCause cause);

// `exit` as far as it is the load's own: a signal that we sent is never its cause of death (L20).
// We send SIGTERM and SIGKILL, and only after an order to stop.
std::optional<ExitStatus> own_exit(StopCause cause, const std::optional<ExitStatus>& exit);

// Everything that is known of a load that failed by itself, before it has a class.
struct DeathEvidence {
  StopCause cause = StopCause::kNone;
  std::optional<ExitStatus> exit;
  // What a line of the log, the worker or the supervisor says; absent: nobody said anything.
  std::optional<FailureClass> said;
  std::string reason;  // sanitised; of `said` the line itself
  // memory.events or the kernel's log says so; SIGKILL alone never proves it (L9).
  bool oom_proven = false;
};

// The failure that goes to the ledger. Proven lack of memory comes before what was said, and that
// before the exit. `crash` needs a line: a death by a signal alone is unclassified with its signal;
// `oom` needs its proof (L21, L9).
LoadFailure judge(const DeathEvidence& evidence);

}  // namespace berth::core
