#pragma once

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/plan_book.h"

namespace berth::core {

// The planner's answer for one way to place the model.
Decision plan_option(const PlanBook& book, const PlacementOption& option);

}  // namespace berth::core
