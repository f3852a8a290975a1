#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/core/exit_status.h"

namespace berth::core {

// Why a load failed by itself (L18).
enum class FailureClass : std::uint8_t {
  kPermanent,
  kResource,
  kOom,
  kCrash,
  kCrashLoop,
  kStalled,
  kTimeout,
  kLaunch,
  kUnclassified,
};

// "permanent"
std::string_view failure_class_name(FailureClass failure_class);
// For an operator.
std::string_view failure_class_sentence(FailureClass failure_class);
// A name that is not known is kUnclassified, never a guess.
FailureClass failure_class_from_name(std::string_view name);
// What a worker said of its own load. It can know only that the file is none for it, that memory
// was refused, or that it met a defect; of the rest (oom, crash_loop, stalled, timeout, launch) it
// has no evidence, so that is kUnclassified like every other name.
FailureClass failure_class_said_by_worker(std::string_view name);

// What is known of a load that failed by itself.
struct LoadFailure {
  FailureClass failure_class = FailureClass::kUnclassified;
  std::string reason;                // sanitised, at most 512 bytes, no path; may be empty
  std::optional<ExitStatus> status;  // where the process ended by itself
};

// "exit 1", "unknown model architecture: 'x'", "SIGSEGV: …": what belongs behind "could not be
// loaded: ".
std::string failure_sentence(const LoadFailure& failure);

}  // namespace berth::core
