#pragma once

#include <cstdint>

namespace berth::core {

// Defects that the simulation plants to prove that its invariants see them. Only the test build
// (BERTH_MUTATIONS) can switch one on; everywhere else mutated() is a constant and its branches do
// not exist.
enum class Mutation : std::uint8_t {
  kNone,
  kLostWaiter,        // a waiter leaves the queue without an answer
  kLostDeadline,      // a waiter's deadline is never looked at
  kDoubleLoad,        // every request for a cold model starts a load of its own
  kNoInstanceCheck,   // L1: a completion of another instance is taken for the current one's
  kLeaseNotReturned,  // a place stays taken after its request is done
  kNoKillAfterTerm,   // L3: a worker that ignores SIGTERM is given up without SIGKILL
  kHangUpEndsLoad,    // L5: a client that goes takes the load with it
  kNoBackOff,         // L9: a worker that died is started again at once
  kOwnSignalBlamed,   // L20: a signal that we sent is told as the cause of death
  kGivenUpIsDeath,    // L9: what we ended counts among the deaths of a crash_loop
  kLostFailure,       // L18: failures never reach the store
};

#ifdef BERTH_MUTATIONS
bool mutated(Mutation mutation);
#else
constexpr bool mutated(Mutation /*mutation*/) {
  return false;
}
#endif

}  // namespace berth::core
