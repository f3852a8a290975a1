#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/planner.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/room.h"

namespace berth::residency {

// One look at all that is waited for: decides for each demand in turn and does it, each on what the
// one before left. Core strand; lives for one call.
class RoomPass {
 public:
  RoomPass(Room& room, core::Snapshot snapshot);
  RoomPass(const RoomPass&) = delete;
  RoomPass& operator=(const RoomPass&) = delete;
  ~RoomPass() = default;

  // The oldest demand first.
  void decide(const Demand& demand);
  // After the last one: what closes for nobody any more serves again (M9), and who waits for a
  // model that does not is decided on. Whether something does.
  bool reopen();
  // At last.
  void finish();
  // When the passing of time alone may change something; absent: never.
  [[nodiscard]] const std::optional<SteadyTime>& again() const { return again_; }

 private:
  // It may be served again by what closes now, which the other demands decide.
  [[nodiscard]] bool may_reopen(const Demand& demand) const;
  // Until then what it would be is held against younger ones, and nothing is done for it.
  void put_off(const Demand& demand);
  void decide_now(const Demand& demand);
  // Of what closes, what would not be closed anew.
  [[nodiscard]] std::vector<Uuid> servable() const;
  void take_turn(const core::Entry& closing, std::vector<Uuid> reopened);
  void drop_hold(const std::string& model);
  // As the core's, of all who wait.
  [[nodiscard]] std::vector<core::Closer> who_would_close(const std::vector<Uuid>& reopened) const;
  // The oldest who would close one of those again, or who would not close anything else.
  [[nodiscard]] std::optional<core::Need> closes_anew(
      const std::vector<Uuid>& reopened, const std::vector<core::Closer>& anyway) const;
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
  void wait(const Demand& demand, std::string_view what, std::vector<Uuid> blockers,
            const core::DomainBytes& missing);
  // What it has to wait for is held for it.
  void hold(const core::Need& need, const core::Decision& decision);

  Room& room_;
  core::Snapshot snapshot_;
  std::optional<SteadyTime> again_;
  core::DomainBytes reclaim_;         // of the bank, for all of them
  Room::Wanted wanted_;               // what is decided on
  std::vector<core::Entry> closing_;  // when it began
  std::vector<core::Need> waiting_;   // where something closes: of all who have to wait
  std::vector<Demand> put_off_;       // the oldest first
};

}  // namespace berth::residency
