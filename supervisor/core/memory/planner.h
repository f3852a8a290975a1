#pragma once

#include <optional>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

namespace berth::core {

// What to do for `need` (M7): production, `berth plan` and the tests call this one. Pure and
// deterministic: the order of the entries, holds and jobs does not matter. Never over a limit, and
// never a victim that is pinned or that a client holds. Of several options the best answer wins: at
// once before after a wait, one device before several (M17), and of those the least left over or
// the cheapest eviction. Tens of microseconds.
Decision plan(const Snapshot& snapshot, const Need& need);

// The hold of a client's need for which room is being made (M9); absent where none is: it was
// admitted or refused, waits for an older one or for other people's programs, or is idle work's.
std::optional<Hold> hold_of(const Need& need, const Decision& decision);

// The hold of a need that has to wait whatever was decided: also where there is room, and its last
// instance has to go first or kept sessions have to give it; or where others' programs seem to have
// it and it may be ours (`proving`: the memory of some process that is gone is not proven back).
std::optional<Hold> hold_of_waiting(const Need& need, const Decision& decision, bool proving);

// One who waits, and for whom a model would be closed (M12) or taken away again.
struct Closer {
  Need need;
  bool again = false;  // one of those that are taken to serve again
};
// All of them among those who wait, the oldest first, if those instances, which close, served
// again, and with them whoever waits for their models.
std::vector<Closer> who_would_close(Snapshot snapshot, const std::vector<Need>& needs,
                                    const std::vector<Uuid>& reopened, bool proving);

// Why a model must not be pinned (M16): it never fits, or not beside what is pinned already, with
// nobody else's programs there. Absent: it may be. `need` is that of a load of it.
std::optional<Refuse> pin_refusal(const Snapshot& snapshot, const Need& need);

}  // namespace berth::core
