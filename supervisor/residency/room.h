#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/decision.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/memory_book.h"
#include "supervisor/residency/residency.h"

namespace berth::residency {

// A model that somebody waits for and that has no instance.
struct Demand {
  std::shared_ptr<const catalog::Model> model;
  core::CallerClass caller = core::CallerClass::kForeground;
  SteadyTime since{};     // its age (M8)
  SteadyTime until{};     // the last of its waiters' deadlines
  bool may_start = true;  // false: its last instance is still going; its room is held meanwhile
};

// Executes what is decided. Core strand. Answers to clients are posted, and of its calls back into
// Room only charge() and changed() come from within.
class RoomHost {
 public:
  RoomHost() = default;
  RoomHost(const RoomHost&) = delete;
  RoomHost& operator=(const RoomHost&) = delete;
  virtual ~RoomHost() = default;

  [[nodiscard]] virtual std::vector<Demand> demands() = 0;
  // Fills in what an instance is and who uses it; all but id, model and charge.
  virtual void describe(const Uuid& instance, core::Entry& entry) const = 0;
  virtual void admit(const Demand& demand, const LaunchPlan& plan) = 0;
  virtual void evict(const core::Victim& victim) = 0;
  // It takes nothing new from now on, and goes when what runs has finished.
  virtual void close(const Uuid& instance) = 0;
  // It closes, or goes on closing, for a demand of that age: who waits for its model comes after
  // that (M12).
  virtual void closes_for(const Uuid& instance, SteadyTime since) = 0;
  // It was closed, and nobody needs its room any more: it serves again, and who waits for its
  // model. False: it cannot.
  virtual bool reopen(const Uuid& instance) = 0;
  virtual void refuse_demand(const std::string& model, const Error& error) = 0;
  // What the model waits for is another thing now.
  virtual void on_room_wait(const std::string& model) = 0;
  // Another model is pinned, resident or not: its room is not that one's for long.
  [[nodiscard]] virtual bool others_pinned(const std::string& model) const = 0;
  // Since when a client has wanted it who left unserved, if that still counts (M8).
  [[nodiscard]] virtual std::optional<SteadyTime> carried(const std::string& model) const = 0;
};

// Of Room::Waiting::what, beside core::park_name().
inline constexpr std::string_view kWaitsForCheck = "check";         // its files are looked at first
inline constexpr std::string_view kWaitsForIdleWork = "idle_work";  // that was told to yield

// Makes room: plans every demand, the oldest first, whenever something changed, and does what the
// planner says. Owns the book of charges, the holds (M9) and what each demand waits for. Core
// strand; lives as long as the residency. Without domains it decides nothing.
class Room {
 public:
  struct Waiting {
    std::string what;              // core::park_name(), or one of the above
    std::vector<Uuid> blockers{};  // the instances that it waits for
    core::DomainBytes missing{};
    SteadyTime since{};

    bool operator==(const Waiting&) const = default;
  };

  // All references outlive it.
  Room(const Environment& environment, RoomHost& host, const Limits& limits);
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room();

  // Admission by bytes is on.
  [[nodiscard]] bool counts() const { return environment_.memory_access.domains != nullptr; }
  // A model may have to be planned: soon it is, once for all.
  void demanded();
  // The book, or the time, may answer somebody's need in another way.
  void changed();
  // That instance is in another state, or others use it; which may be all the same to everybody.
  void changed(const Uuid& instance);

  void charge(const Uuid& instance, const std::string& model, const core::PlacementOption& at);
  // It was measured to take this.
  void recharge(const Uuid& instance, const MeasuredCharge& charge);
  // It stops, for another one's room where `evicted`, or is gone. Both may come more than once.
  void note_stop(const Uuid& instance, pid_t pid, bool evicted);
  void note_gone(const Uuid& instance, pid_t pid);

  // What a demand for that model waits for; null: for nothing that is known.
  [[nodiscard]] const Waiting* waiting(const std::string& model) const;
  // Somebody who came before `since` waits for the room of that instance.
  [[nodiscard]] bool older_waits_for(const Uuid& instance, SteadyTime since) const;
  [[nodiscard]] core::DomainBytes charge_of(const Uuid& instance) const;
  // Absent: it was not measured, or is not charged.
  [[nodiscard]] std::optional<core::Charge> measured(const Uuid& instance) const;
  [[nodiscard]] core::Snapshot snapshot() const;
  // As Residency::plan.
  [[nodiscard]] PlanReport plan(const catalog::Model& model, bool anew) const;
  // As Residency::room_waits.
  [[nodiscard]] std::vector<RoomWait> waits() const;
  // What of each domain is charged to nobody, that instance aside; and what the model would be
  // charged there at least, if it is not null. As FailureBook::Charged.
  [[nodiscard]] std::vector<core::DomainNow> charged(const catalog::Model* model,
                                                     const Uuid& without) const;
  // Whether `extra` may be pinned beside those that are, each where it is or where it would be put
  // (M16), with nobody else's programs there. Error: the refusal.
  [[nodiscard]] Status fits_together(
      const std::vector<std::shared_ptr<const catalog::Model>>& pinned,
      const std::shared_ptr<const catalog::Model>& extra) const;

  [[nodiscard]] RoomCounters& counters() { return counters_; }
  [[nodiscard]] const RoomCounters& counters() const { return counters_; }

 private:
  // Of a model's files, before anything is taken away for it (L25).
  struct Check {
    std::shared_ptr<const catalog::Model> model;  // as it was looked at
    bool passed = false;
    SteadyTime since{};  // of the answer
  };
  friend class RoomPass;

  void post();
  void plan_all();
  [[nodiscard]] std::vector<core::Entry> entries() const;
  // The need of a demand, and the window that it is for.
  struct Wanted {
    core::Need need;
    std::uint32_t window = 0;
    std::optional<core::WindowBound> bound{};

    // Nothing is known of it: it is admitted without a charge.
    [[nodiscard]] bool uncounted() const {
      return need.options.empty() && need.missing_devices.empty();
    }
  };
  // `company`: it is not to be alone, whoever is there now (M6).
  [[nodiscard]] Wanted wanted(const Demand& demand, const core::Snapshot& snapshot,
                              bool company = false) const;
  // How an instance that is put there is to be started.
  [[nodiscard]] LaunchPlan launch(const catalog::Model& model, const Wanted& wanted,
                                  const core::PlacementOption& at) const;
  // kInsufficientMemory where it can never fit, else kNoRoom (M14); for_caller() cuts what it says
  // of other models.
  [[nodiscard]] Error refusal(const catalog::Model& model, const core::Refuse& refuse,
                              const core::Snapshot& snapshot) const;
  // Whether its files were looked at; else they are now, and it is planned again then.
  [[nodiscard]] bool checked(const Demand& demand);
  void tell_waits(const std::map<std::string, Waiting>& before);
  // For whose room something goes.
  struct Taker {
    std::string model;
    core::CallerClass caller = core::CallerClass::kForeground;
  };
  void tell_eviction(const Taker& taker, const core::Victim& victim, std::string_view cause);

  const Environment& environment_;
  RoomHost& host_;
  const Limits& limits_;
  MemoryBook book_;
  bool posted_ = false;
  bool planning_ = false;                   // what it does itself changes the book, too
  std::map<std::string, Waiting> waiting_;  // by model
  std::vector<core::Hold> holds_;
  std::map<std::string, Check> checks_;  // by model
  std::set<std::string> company_;        // models that are waited for, and that others went for
  std::set<std::string> waited_for_;     // models; in a pass those of its demands
  std::map<Uuid, Taker> closing_for_;    // by instance, until it stops or serves again
  std::map<Uuid, SteadyTime> yielding_;  // jobs that were told to, and until when they may take
  std::vector<core::Entry> planned_;     // the entries as the last pass left them, by id
  Timer again_;
  RoomCounters counters_;
  // What was posted or asked may come after its end.
  const std::shared_ptr<Room*> self_ = std::make_shared<Room*>(this);
};

}  // namespace berth::residency
