#pragma once

#include <vector>

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/core/memory/victims.h"

// The sums that the planner works with. For planner.cc and its helpers.
namespace berth::core {

// A snapshot as one need sees it. Refers to both, which must outlive it.
struct PlanBook {
  const Snapshot* snapshot = nullptr;
  const Need* need = nullptr;
  DomainBytes limit{};       // of each domain (M3)
  DomainBytes hard_limit{};  // the same with nobody else's programs
  DomainBytes charged{};     // all entries, and what jobs have beside them
  DomainBytes leaving{};
  DomainBytes closing{};
  DomainBytes pinned{};
  DomainBytes stuck{};
  DomainBytes bank{};
  DomainBytes reclaimable{};  // of the bank, for this need
  DomainBytes held{};         // by older waiters (M9)
  DomainBytes freed{};        // what those will have taken away, that is not leaving or closing
  // The same as it is when each older waiter in turn has its room, the oldest first.
  struct Turn {
    DomainBytes held{};
    DomainBytes freed{};
  };
  std::vector<Turn> turns{};
  std::vector<Judged> judged{};           // one for each entry
  std::vector<bool> freed_entry{};        // one for each entry: counted in `freed`
  const Hold* oldest = nullptr;           // of the holds that count
  std::optional<SteadyTime> hold_ends{};  // the first of them to end

  // What can be taken away: up to and including `most` of kVictim < kGrace < kInUse < kLoading.
  // `beside_holds`: not what older waiters already count on.
  [[nodiscard]] std::vector<Candidate> candidates(Standing most, bool beside_holds) const;
};

PlanBook plan_book(const Snapshot& snapshot, const Need& need);

// What is missing for `bytes` in the domains that it uses, when `gone` has come back and `held` is
// there besides. The bank counts as used.
DomainBytes missing_for(const PlanBook& book, const DomainBytes& bytes, const DomainBytes& gone,
                        const DomainBytes& held);

// The larger of both in each domain.
DomainBytes at_least(const DomainBytes& a, const DomainBytes& b);
// The smaller of both in each domain.
DomainBytes at_most(const DomainBytes& a, const DomainBytes& b);

}  // namespace berth::core
