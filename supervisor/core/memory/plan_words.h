#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

// Decisions for people and for clients. All take the snapshot and the need that they were made for.
namespace berth::core {

// "a, b and c"; of many the first four.
std::string listed(std::vector<std::string> parts);

// "device CUDA7 is not there", "devices CUDA0 and CUDA7 are not there"; at least one.
std::string not_there(std::vector<std::string> devices);

// A decision and its reason in one or two sentences, for `berth plan` and events. Names models.
std::string sentence_of(const Decision& decision, const Snapshot& snapshot, const Need& need);

// The error for a client whose model is refused: never_fits is insufficient_memory with all its
// numbers (M14), everything else no_room with what lifts it. `fits`: what would_fit() found.
Error error_of(const Refuse& refuse, const Snapshot& snapshot, const Need& need, WallTime now,
               const std::optional<WouldFit>& fits = std::nullopt);

// The error for a client who cannot or may not wait any longer for room: no_room, with Retry-After
// and, where idle work holds what is missing, that as its holder (I11). for_caller() cuts it.
Error error_of(const Park& park, const Snapshot& snapshot, const Need& need, WallTime now);

}  // namespace berth::core
