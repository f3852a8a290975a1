#pragma once

#include <cstddef>

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

// Any small machine: three domains of some 30 bytes, up to seven entries, holds and a job.
namespace berth::core::testing {

inline constexpr std::size_t kDomains = 3;

// Draws; within a property of RapidCheck only.
int any(int low, int high);
bool one_in(int number);
Snapshot some_snapshot();
Need some_need();

// A snapshot, a need, and what the planner makes of them.
struct Seen {
  Seen();

  Snapshot snapshot;
  Need need;
  Decision decision;
};

}  // namespace berth::core::testing
