#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/ledger/provenance.h"

namespace berth::core {

// What ended the time in which a failure stood (L23).
enum class LiftCause : std::uint8_t {
  kProvenance,  // a field of its provenance moved
  kMemory,      // there is more free memory, or less is needed (L21)
  kSuccess,     // the model was loaded
  kHand,        // an operator asked for another try
  kRestart,     // of the server; its class does not outlive one (L21)
  kSuperseded,  // a newer instance of the model decides (L24), or failed in its turn
};
// "provenance"
std::string_view lift_cause_name(LiftCause cause);
std::optional<LiftCause> lift_cause_from_name(std::string_view name);

struct Lift {
  WallTime when{};
  LiftCause cause = LiftCause::kHand;
  std::optional<MovedField> moved;  // of kProvenance
  std::string detail;               // of kMemory: what changed; of kHand: who, where it is known

  bool operator==(const Lift&) const = default;
};
// "the served window moved: 4096 -> 8192", "by hand"
std::string to_string(const Lift& lift);

// The failing domain of a `resource` failure before there was a process that loads: what it takes
// to start one.
inline constexpr std::string_view kLaunchDomain = "launch";

// One memory domain ("host", "CUDA0") of a load that failed; bytes. Absent: not known.
struct FailureMemory {
  std::string domain;
  std::optional<std::uint64_t> predicted_charge;
  std::optional<std::uint64_t> free_before;  // when the load started
  std::optional<std::uint64_t> free_at_failure;
  std::optional<std::uint64_t> high_water;          // the most that the attempt held
  std::optional<std::uint64_t> failing_allocation;  // the one that was refused

  bool operator==(const FailureMemory&) const = default;
};

// A load that failed by itself, as it is kept (L18). A value.
struct FailureRecord {
  Uuid id;  // UUIDv7
  std::string model;
  FailureClass failure_class = FailureClass::kUnclassified;
  std::string reason;              // sanitised, at most 512 bytes, no path
  std::optional<ExitStatus> exit;  // never a signal that we sent (L20)
  Uuid instance;
  WallTime started{};
  WallTime ended{};  // since when it stands
  // For admins only: they may hold paths and keys.
  std::vector<std::string> command;
  std::vector<std::string> environment;  // what differs from the server's own, "NAME=value"
  std::vector<std::string> log_tail;     // sanitised
  std::vector<FailureMemory> memory;     // by domain
  std::string failing_domain;            // of a resource or oom failure; empty: not known
  Provenance provenance;                 // as the load started (L19)
  std::optional<Lift> lifted;            // absent: it stands

  bool operator==(const FailureRecord&) const = default;
};

inline constexpr std::size_t kFailureReasonBytes = 512;
inline constexpr std::size_t kFailureLogLines = 20;
// Of the command line, and of the environment.
inline constexpr std::size_t kFailureArgumentBytes = 16UL * 1024UL;
inline constexpr std::size_t kFailureDomains = 64;

// The record with every part within its bound: reason and log lines through carried_text() (L16),
// too much of command or environment cut off behind "…".
FailureRecord bounded(FailureRecord record);

// "exit 1: unknown model architecture: 'x'": as failure_sentence().
std::string failure_sentence(const FailureRecord& record);

// Whether it still stands after the server was started anew (L21): permanent, launch, crash and
// plain exit statuses do. Everything that may have come from the machine's state does not:
// resource, oom, timeout, stalled, crash_loop, and an end that only a signal explains, or nothing.
bool outlives_restart(const FailureRecord& record);

// What an operator or a client can do about it, one sentence that names the model.
std::string way_out(const FailureRecord& record);

}  // namespace berth::core
