#pragma once

#include <optional>
#include <string>

#include "common/result.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

namespace berth::residency {

// The refusal as whoever waited is told: kInsufficientMemory where it can never fit, else kNoRoom
// (M14). for_caller() cuts what it says of other models.
Error room_refusal(const std::string& model, const core::Refuse& refuse,
                   const core::Snapshot& snapshot, const std::optional<WouldFit>& would_fit);

}  // namespace berth::residency
