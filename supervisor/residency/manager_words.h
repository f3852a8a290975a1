#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/residency.h"

// What the manager tells those who wait. For its own files.
namespace berth::residency {

// Beside the worker's own phases.
inline constexpr std::string_view kPhaseStopping = "stopping";
inline constexpr std::string_view kPhaseBackOff = "back_off";
inline constexpr std::string_view kPhaseFailed = "failed";
inline constexpr std::string_view kPhaseQueued = "queued";

std::string human(Duration duration);
// "1 request waits", "2 requests wait"
std::string requests(std::uint32_t count, const std::string& verb);

Error problem_error(const catalog::Model& model);
// The catalogue has it no more.
Error vanished_error(const std::string& model);
Error shutting_down_error();
Error conflict_error(const Instance& instance, std::string message);

// What a waiter was waiting for when its time was over.
std::string wait_sentence(const ClaimProgress& progress);

}  // namespace berth::residency
