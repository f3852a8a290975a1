#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"

// Who may be taken away for a need, in which order, and how many (M8).
namespace berth::core {

// What an entry is to a need.
enum class Standing : std::uint8_t {
  kVictim,   // may be taken away now
  kGrace,    // would be one, but for grace or retry_grace
  kInUse,    // ready, with a client
  kLoading,  // a load that a client waits for, or that has to be let run (L5)
  kLeaving,  // its memory comes back by itself
  kClosing,  // the same, as soon as its clients are done
  kPinned,
  kStuck,
};

struct Judged {
  Standing standing = Standing::kPinned;
  VictimKind kind = VictimKind::kReady;  // of those that are victims, now or after grace
  SteadyTime release{};                  // of kGrace: when it ends

  bool operator==(const Judged&) const = default;
};

// M8, L5, I3: to idle work nothing is a victim, then kVictim and kGrace read as kInUse.
Judged judge(const Entry& entry, const Need& need, SteadyTime now, const PlanPolicy& policy);

// Seconds that its eviction costs: its load and the lost prefill, weighted by recency, so that what
// was used just now counts in full, and half after policy.recency_half.
double eviction_cost(const Entry& entry, SteadyTime now, const PlanPolicy& policy);

// Something that can give memory: an instance, or what a job holds beside its instance.
struct Candidate {
  const Entry* entry = nullptr;  // one of both is set
  const IdleJob* job = nullptr;
  Judged judged{};
  double cost = 0;      // seconds; 0 of what idle work holds
  double per_byte = 0;  // cost by byte of what is missing; set by cover()

  [[nodiscard]] const DomainBytes& bytes() const { return entry ? entry->charge : job->extra; }
};

// The smallest sufficient set in the order of M8: what idle work holds, then victims, then (where
// the caller lets them in) those in grace, in use, loading; in each by cost per byte that is
// missing, ties by least recent use. What turns out unnecessary is left out, the dearest first.
// Absent: all together do not suffice. Sorts `candidates`.
std::optional<std::vector<Candidate>> cover(std::vector<Candidate>& candidates,
                                            const DomainBytes& missing);

}  // namespace berth::core
