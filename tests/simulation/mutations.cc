#include "tests/simulation/mutations.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "supervisor/core/mutation.h"

namespace berth {
namespace {

core::Mutation planted = core::Mutation::kNone;

constexpr std::array<std::pair<std::string_view, core::Mutation>, 35> kNames = {{
    {"none", core::Mutation::kNone},
    {"lost_waiter", core::Mutation::kLostWaiter},
    {"lost_deadline", core::Mutation::kLostDeadline},
    {"double_load", core::Mutation::kDoubleLoad},
    {"no_instance_check", core::Mutation::kNoInstanceCheck},
    {"lease_not_returned", core::Mutation::kLeaseNotReturned},
    {"no_kill_after_term", core::Mutation::kNoKillAfterTerm},
    {"hang_up_ends_load", core::Mutation::kHangUpEndsLoad},
    {"no_back_off", core::Mutation::kNoBackOff},
    {"own_signal_blamed", core::Mutation::kOwnSignalBlamed},
    {"given_up_is_death", core::Mutation::kGivenUpIsDeath},
    {"lost_failure", core::Mutation::kLostFailure},
    {"charge_dropped_at_stop", core::Mutation::kChargeDroppedAtStop},
    {"charge_never_returned", core::Mutation::kChargeNeverReturned},
    {"no_proof", core::Mutation::kNoProof},
    {"loads_not_counted", core::Mutation::kLoadsNotCounted},
    {"victim_with_lease", core::Mutation::kVictimWithLease},
    {"no_grace", core::Mutation::kNoGrace},
    {"hold_ignored", core::Mutation::kHoldIgnored},
    {"hold_never_ends", core::Mutation::kHoldNeverEnds},
    {"dearest_first", core::Mutation::kDearestFirst},
    {"torn_down_twice", core::Mutation::kTornDownTwice},
    {"pinned_evicted", core::Mutation::kPinnedEvicted},
    {"refused_too_soon", core::Mutation::kRefusedTooSoon},
    {"never_replanned", core::Mutation::kNeverReplanned},
    {"never_closed", core::Mutation::kNeverClosed},
    {"never_reopened", core::Mutation::kNeverReopened},
    {"idle_work_evicts", core::Mutation::kIdleWorkEvicts},
    {"growth_ignored", core::Mutation::kGrowthIgnored},
    {"jobs_not_told", core::Mutation::kJobsNotTold},
    {"yield_not_awaited", core::Mutation::kYieldNotAwaited},
    {"bank_not_counted", core::Mutation::kBankNotCounted},
    {"bank_never_shrunk", core::Mutation::kBankNeverShrunk},
    {"no_turns", core::Mutation::kNoTurns},
    {"idle_work_first", core::Mutation::kIdleWorkFirst},
}};

}  // namespace

namespace core {

bool mutated(Mutation mutation) {
  return mutation == planted && mutation != Mutation::kNone;
}

}  // namespace core

namespace sim {

bool plant(std::string_view name) {
  const auto* const at =
      std::ranges::find(kNames, name, &std::pair<std::string_view, core::Mutation>::first);
  if (at == kNames.end()) return false;
  planted = at->second;
  return true;
}

}  // namespace sim
}  // namespace berth
