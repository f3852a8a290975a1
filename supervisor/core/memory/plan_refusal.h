#pragma once

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/plan_book.h"

namespace berth::core {

// By how much `sum` is over `room` in the domains that `bytes` uses.
DomainBytes lacks(const DomainBytes& sum, const DomainBytes& bytes, const DomainBytes& room);

// The refusal of an option that would not fit either if all were gone that may go; or, for
// foreign_wait, a wait where only other people's programs are in the way (M3, M14).
Decision refuse_option(const PlanBook& book, const PlacementOption& option);

// The refusal of a need whose devices are not there.
Refuse refuse_missing(const PlanBook& book);

}  // namespace berth::core
