#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"

// What the planner decides on: the book of charges as it is at one moment, and what is asked for.
// Values, made by the core strand; the planner changes nothing and asks for nothing else.
namespace berth::core {

// Who asks for a model, and so for memory. The operator counts as a client, but for the words.
enum class CallerClass : std::uint8_t {
  kForeground,  // a client's request
  kOperator,    // `berth load`, a pin
  kIdle,        // the server's own work: it evicts no other model and makes nobody wait (I3)
};
// As events say it: "request", "operator", "idle_work"
std::string_view caller_name(CallerClass caller);

// The life of an instance, as far as memory is concerned.
enum class EntryState : std::uint8_t {
  kStarting,
  kLoading,
  kReady,    // busy too: `clients` says so
  kClosing,  // what runs on it is finished, then it goes (M12)
  kLeaving,  // is being stopped: its memory comes back within the stop ladder's bound
  kStuck,    // was killed and does not go: charged, and nobody waits for it (L2)
};
// "leaving"
std::string_view entry_state_name(EntryState state);

// One instance, charged from its start until its process is proven gone (L2). Also a measuring one.
struct Entry {
  Uuid id{};
  std::string model{};
  EntryState state = EntryState::kStarting;
  DomainBytes charge{};
  bool pinned = false;
  std::uint32_t clients = 0;  // leases and claims of clients and of operators who wait
  std::uint32_t soft = 0;     // leases and claims of idle work
  // Of a ready one: when it became ready, or the last client's work on it ended. Idle work does not
  // touch it (I2).
  SteadyTime idle_since{};
  SteadyTime last_used{};  // for LRU; idle work does not touch it
  bool used_last_by_idle_work = false;
  // Of a load without a client: when the last one went (L5). Absent: it never had one; then one of
  // idle work (`used_last_by_idle_work`) may go at once, and an operator's is let run.
  std::optional<SteadyTime> abandoned_since{};
  // Its model's previous load was torn down, abandoned, for another one's sake: not twice (L5).
  bool torn_down_before = false;
  // What its eviction costs: its measured load, or what an interrupted one has spent; and the
  // prefill of sessions that are not stored.
  Duration reload{};
  Duration prefill_lost{};

  bool operator==(const Entry&) const = default;
};

// Room that is being made for the oldest waiter of a model: younger ones are admitted only beside
// it (M9). It ends with its waiter.
struct Hold {
  std::string model{};
  DomainBytes bytes{};        // the charge of the option that room is made for
  SteadyTime since{};         // the age of its demand, as Need::since
  SteadyTime until{};         // its waiter's deadline; later it holds nothing
  std::vector<Uuid> frees{};  // entries that its last plan takes away, waits for or closes

  bool operator==(const Hold&) const = default;
};

// A running piece of idle work, which yields to any client (I4).
struct IdleJob {
  Uuid id{};
  std::string kind{};  // "context_probe"
  std::string model{};
  // Charged by it beside its instance's charge, as a probe's second context; back when it yields.
  DomainBytes extra{};
  // The instance that it holds softly; nil: none.
  Uuid instance{};
  SteadyTime since{};
  Duration gives_way_within{};  // the bound of its stop

  bool operator==(const IdleJob&) const = default;
};

// The settings that the planner goes by, and the pressure of the moment.
struct PlanPolicy {
  Duration grace = std::chrono::seconds(10);        // M8
  Duration retry_grace = std::chrono::seconds(10);  // L5
  Duration max_wait = std::chrono::seconds(10);     // M12
  // How long room is waited for that only programs which are not ours can give back.
  Duration foreign_wait = std::chrono::seconds(10);
  // After so long without use an entry's cost of eviction counts half (M8).
  Duration recency_half = std::chrono::minutes(10);
  bool critical_pressure = false;  // S18: grace protects nothing

  bool operator==(const PlanPolicy&) const = default;
};

struct Snapshot {
  SteadyTime now{};
  Domains domains{};             // the host first
  std::vector<Entry> entries{};  // in any order: decisions do not depend on it
  std::vector<Hold> holds{};
  std::vector<IdleJob> jobs{};
  // What kept sessions take; reclaimable (M18). Idle work leaves `bank_floor` of it alone.
  DomainBytes bank{};
  DomainBytes bank_floor{};
  PlanPolicy policy{};
};

// What is asked for: memory for one instance of a model.
struct Need {
  std::string model{};
  CallerClass caller = CallerClass::kForeground;
  SteadyTime since{};  // of the unmet demand; survives hang-ups for retry_grace
  SteadyTime until{};  // the waiter's deadline (M19)
  // Ways to place it, of which one is enough; made by placement_options() for this snapshot, or one
  // that is declared. Empty only where devices are missing.
  std::vector<PlacementOption> options{};
  // Devices that the configuration asks for and that are not there, by its names.
  std::vector<std::string> missing_devices{};
  // Another model is waited for, or has gone for this one and will come back: the window is made as
  // if it were there (M6). Else each would take the whole budget and drive the other one out.
  bool company = false;
  // Models may be closed for it (M12). Not while its own last instance closes: that one's room is
  // in play, and its requests come behind the swap.
  bool may_close = true;
};

}  // namespace berth::core
