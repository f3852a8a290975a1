#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"
#include "supervisor/core/memory/snapshot.h"

// What the planner answers (M7): each kind says what to do, and why in numbers and names.
namespace berth::core {

// There is room now: charge it and start.
struct Fits {
  PlacementOption at{};
  DomainBytes left{};  // of what was available, in the domains that it uses

  bool operator==(const Fits&) const = default;
};

// There is room now, once kept sessions have given some (M18): shrink, charge it and start.
struct ShrinkBank {
  PlacementOption at{};
  DomainBytes bank{};  // to be reclaimed, never more than is missing

  bool operator==(const ShrinkBank&) const = default;
};

enum class VictimKind : std::uint8_t {
  kReady,          // idle: stop it
  kAbandonedLoad,  // nobody waits for it: interrupt it (L5); its model's next load is kept
  kIdleWork,       // held softly by idle work, ready or loading: take it away (I4)
};
// "abandoned_load"
std::string_view victim_kind_name(VictimKind kind);

struct Victim {
  Uuid id{};
  std::string model{};
  VictimKind kind = VictimKind::kReady;
  DomainBytes charge{};
  double cost_seconds = 0;  // of its eviction, weighted by recency

  bool operator==(const Victim&) const = default;
};

// Make room, and plan again when it is there: all of these together suffice, none is superfluous,
// and whichever gets a client before its stop began is planned anew (M9).
struct Evict {
  PlacementOption at{};
  std::vector<Victim> victims{};  // in the order of M8
  DomainBytes bank{};             // to be reclaimed besides
  DomainBytes missing{};          // what there was too little of

  bool operator==(const Evict&) const = default;
};

// As Evict, where idle work has to yield first.
struct PreEmpt {
  PlacementOption at{};
  std::vector<Uuid> jobs{};
  Duration within{};  // the longest of their bounds
  std::vector<Victim> victims{};
  DomainBytes bank{};
  DomainBytes missing{};

  bool operator==(const PreEmpt&) const = default;
};

// What a need waits for.
enum class ParkFor : std::uint8_t {
  kLeaving,   // instances that are being stopped
  kClosing,   // instances that finish what runs on them
  kGrace,     // models that were used a moment ago, or loads that were abandoned a moment ago
  kClients,   // models that clients use, or whose load they wait for
  kOlder,     // an older waiter, for whom room is being made (M9)
  kForeign,   // programs that are not ours
  kIdleRoom,  // idle work: room that only an eviction would make
};
// "leaving"
std::string_view park_name(ParkFor what);

struct Park {
  PlacementOption at{};
  ParkFor what = ParkFor::kLeaving;
  std::vector<Uuid> blockers{};  // the entries waited for
  std::vector<Uuid> takes{};     // the entries that go for it then, the blockers among them
  // Ready ones that clients use and that take nothing new from now on, since this need has waited
  // for max_wait (M12).
  std::vector<Uuid> close{};
  std::string older{};  // of kOlder: its model
  SteadyTime since{};
  SteadyTime until{};  // the waiter's deadline
  // When the passing of time alone may change the answer: plan again then, and whenever the book
  // changes.
  std::optional<SteadyTime> again{};
  DomainBytes missing{};

  bool operator==(const Park&) const = default;
};

enum class RefuseWhy : std::uint8_t {
  kDeviceMissing,  // the configuration's device is not there, and nothing else will do
  kNeverFits,      // more than the machine may give
  kPinned,         // pinned models are in the way
  kStuck,          // processes that do not go are in the way
  kForeign,        // programs that are not ours are in the way, and have been for foreign_wait
};
// "never_fits"
std::string_view refusal_name(RefuseWhy why);

struct Refuse {
  RefuseWhy why = RefuseWhy::kNeverFits;
  // The option that came closest, and the domain that is shortest of memory for it. Bytes.
  PlacementOption at{};
  DomainIndex domain = kHostDomain;
  DomainBytes needed{};
  DomainBytes limit{};           // of kNeverFits: with nobody else's programs
  DomainBytes available{};       // without an eviction, the bank counted as free
  DomainBytes deficit{};         // by how much it is too large once everything that may go is gone
  std::vector<Uuid> blockers{};  // pinned or stuck
  std::vector<std::string> models{};   // theirs
  std::vector<std::string> devices{};  // of kDeviceMissing

  bool operator==(const Refuse&) const = default;
};

using Decision = std::variant<Fits, ShrinkBank, Evict, PreEmpt, Park, Refuse>;

// "fits", "shrink_bank", "evict", "pre_empt", "park", "refuse"
std::string_view decision_name(const Decision& decision);

}  // namespace berth::core
