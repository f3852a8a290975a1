#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/room.h"

namespace berth::residency {

// One look at all that is waited for: decides for each demand in turn and does it, each on what the
// one before left. Core strand; lives for one call.
class RoomPass {
 public:
  RoomPass(Room& room, core::Snapshot snapshot) : room_(room), snapshot_(std::move(snapshot)) {}
  RoomPass(const RoomPass&) = delete;
  RoomPass& operator=(const RoomPass&) = delete;
  ~RoomPass() = default;

  // The oldest demand first.
  void decide(const Demand& demand);
  // After the last one.
  void finish();
  // Then: what closes for nobody any more serves again (M9).
  void reopen();
  // When the passing of time alone may change something; absent: never.
  [[nodiscard]] const std::optional<SteadyTime>& again() const { return again_; }

 private:
  void act(const Demand& demand, const core::Fits& fits);
  void act(const Demand& demand, const core::ShrinkBank& shrink);
  void act(const Demand& demand, const core::Evict& evict);
  void act(const Demand& demand, const core::PreEmpt& pre_empt);
  void act(const Demand& demand, const core::Park& park);
  void act(const Demand& demand, const core::Refuse& refuse);

  void admit(const Demand& demand, const core::PlacementOption& at);
  void shrink_bank(const core::DomainBytes& bytes);
  void plan_again_at(SteadyTime when);
  // Tells those that were not told yet.
  void tell_to_yield(const std::vector<Uuid>& jobs);
  // It was told to yield and may take its time still.
  [[nodiscard]] bool may_take_its_time(const Uuid& job) const;
  // What may be taken away at once for a need that idle work has to yield to: what no job holds
  // that is still yielding, and what those hold that were given long enough.
  [[nodiscard]] std::vector<core::Victim> takable(const core::PreEmpt& pre_empt) const;
  void take_away(const Demand& demand, const std::vector<core::Victim>& victims);
  // Before it is done.
  void tell_eviction(const Demand& demand, const core::Victim& victim, std::string_view cause);
  void wait(const Demand& demand, std::string_view what, std::vector<Uuid> blockers,
            const core::DomainBytes& missing);
  void hold(const Demand& demand, const core::PlacementOption& at);

  Room& room_;
  core::Snapshot snapshot_;
  std::optional<SteadyTime> again_;
  core::DomainBytes reclaim_;     // of the bank, for all of them
  Room::Wanted wanted_;           // what is decided on
  std::set<Uuid> go_on_closing_;  // for some of those who have to wait
};

}  // namespace berth::residency
