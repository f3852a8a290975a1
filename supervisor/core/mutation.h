#pragma once

#include <cstdint>

namespace berth::core {

// Defects that the simulation plants to prove that its invariants see them. Only the test build
// (BERTH_MUTATIONS) can switch one on; everywhere else mutated() is a constant and its branches do
// not exist.
enum class Mutation : std::uint8_t {
  kNone,
  kLostWaiter,           // a waiter leaves the queue without an answer
  kLostDeadline,         // a waiter's deadline is never looked at
  kDoubleLoad,           // every request for a cold model starts a load of its own
  kNoInstanceCheck,      // L1: a completion of another instance is taken for the current one's
  kLeaseNotReturned,     // a place stays taken after its request is done
  kNoKillAfterTerm,      // L3: a worker that ignores SIGTERM is given up without SIGKILL
  kHangUpEndsLoad,       // L5: a client that goes takes the load with it
  kNoBackOff,            // L9: a worker that died is started again at once
  kOwnSignalBlamed,      // L20: a signal that we sent is told as the cause of death
  kGivenUpIsDeath,       // L9: what we ended counts among the deaths of a crash_loop
  kLostFailure,          // L18: failures never reach the store
  kChargeDroppedAtStop,  // L2: what is being stopped is not charged any more
  kChargeNeverReturned,  // L2: what is gone stays charged
  kNoProof,              // M10: memory counts as back with the exit alone
  kLoadsNotCounted,      // L2: an instance is charged from its being ready on
  kVictimWithLease,      // M8: what clients use or wait for is taken away
  kNoGrace,              // M8: what was used a moment ago is taken away
  kHoldIgnored,          // M9: a younger waiter takes the room that is made for an older one
  kHoldNeverEnds,        // M9: room is held for one who has gone
  kDearestFirst,         // M8: the most expensive victim goes first
  kTornDownTwice,        // L5: an abandoned load is torn down again and again
  kPinnedEvicted,        // M16: a pin protects nothing
  kRefusedTooSoon,       // M14: what an eviction would make room for is refused
  kNeverReplanned,       // M8: who waits for the passing of time alone waits for ever
  kNeverClosed,          // M12: a busy model never gives its room away
  kNeverReopened,        // M9: a busy model closes for one who has gone
  kIdleWorkEvicts,       // I3: idle work takes other models' room
  kGrowthIgnored,        // M5: what was measured does not change a charge
  kJobsNotTold,          // I4: idle work is not told to yield
  kYieldNotAwaited,      // I4: what idle work holds is taken before it could yield
  kBankNotCounted,       // M18: what the bank has counts as free before it was given back
  kBankNeverShrunk,      // M18: the bank is not told to shrink
  kNoTurns,              // M13: tenants do not take turns
  kIdleWorkFirst,        // I3: idle work waits among the clients
};

#ifdef BERTH_MUTATIONS
bool mutated(Mutation mutation);
#else
constexpr bool mutated(Mutation /*mutation*/) {
  return false;
}
#endif

}  // namespace berth::core
