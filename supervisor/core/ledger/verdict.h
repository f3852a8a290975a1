#pragma once

#include <optional>
#include <string>

#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"

namespace berth::core {

// The signals that the supervisor has sent to a process so far; it knows no others.
struct SentSignals {
  bool term = false;
  bool kill = false;

  [[nodiscard]] bool any() const { return term || kill; }
};

// `exit` as far as it is the process's own: a signal that we sent is never its cause of death
// (L20), and after a SIGTERM of ours a plain exit is the answer to it. What came before our SIGKILL
// could reach it is its own.
std::optional<ExitStatus> own_exit(const SentSignals& sent, const std::optional<ExitStatus>& exit);

// Why it failed where the kernel proves it and nothing else was said.
inline constexpr const char* kOomReason =
    "the kernel killed its worker, or a process of it, because memory ran out";

// Everything that is known of a load, or of a ready worker, that failed by itself, before it has a
// class.
struct DeathEvidence {
  SentSignals sent;
  std::optional<ExitStatus> exit;
  // What a line of the log, the worker or the supervisor says; absent: nobody said anything.
  std::optional<FailureClass> said;
  std::string reason;  // sanitised; of `said` the line itself
  // The kernel itself says so; SIGKILL alone never proves it (L9).
  bool oom_proven = false;
};

// The failure that goes to the ledger. Proven lack of memory comes before what was said, and that
// before the exit; but what a line or the worker says of the cause is it where the kernel killed
// not the process itself but another one of it. `crash` needs a line: a death by a signal alone is
// unclassified with its signal; `oom` needs its proof (L21, L9). Of a process that we ended for
// what was said, the exit tells only more of a crash.
LoadFailure judge(const DeathEvidence& evidence);

}  // namespace berth::core
