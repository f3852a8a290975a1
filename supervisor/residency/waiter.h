#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// One claim as the residency sees it, from acquire() until its answer is delivered or it is
// dropped. Core strand.
struct Waiter {
  core::Ticket ticket = 0;
  std::string model;
  RequestClass request_class = RequestClass::kForeground;
  SteadyTime since{};
  SteadyTime deadline{};
  ClaimObserver* observer = nullptr;
  Timer timer;  // its deadline
  std::optional<ClaimProgress> told;
  // Decided, and posted to be delivered.
  std::optional<std::variant<Lease, Error>> answer;
};

}  // namespace berth::residency
