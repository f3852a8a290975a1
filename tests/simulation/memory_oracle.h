#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/sim_request.h"
#include "tests/simulation/sim_world.h"

namespace berth::sim {

// Watches what is admitted, evicted, refused and left waiting, and knows of the supervisor's book
// nothing: it adds up what simulated processes hold, and follows the clients themselves. Where its
// view lags behind by an answer that is still on its way it is lenient. The invariants of spec 2.
// Each look says what is wrong; empty: nothing.
class MemoryOracle {
 public:
  using Requests = std::vector<std::unique_ptr<SimRequest>>;

  // Idle work, and until when it may take to yield; absent: nobody told it to.
  struct Job {
    std::string instance;
    core::DomainBytes extra{};
    std::optional<SteadyTime> until{};
  };

  // `due`: tells the models that have no instance and want nothing but room.
  MemoryOracle(SimWorld& world, const Requests& requests, const core::PlanPolicy& policy,
               std::function<std::set<std::string>()> due)
      : world_(world), requests_(requests), policy_(policy), due_(std::move(due)) {}

  // An instance is created there.
  [[nodiscard]] std::string on_admit(const std::string& model, const std::string& instance,
                                     const core::PlacementOption& at);
  // It turned out to take this.
  void on_measured(const std::string& instance, const core::DomainBytes& bytes);
  [[nodiscard]] std::string on_event(const Event& event);
  void on_served(const SimRequest& request);
  void on_leaves(const SimRequest& request);
  void on_pin(const std::string& model, bool pinned);
  // For what goes it cannot be told any more what of a device is its own, and what is others'.
  void on_foreign_use() { foreign_changed_ = world_.clock.now(); }
  // Whoever waits for it now is answered, and hears of it in a moment.
  void on_forced_unload(const std::string& model) { answered_[model] = world_.clock.now(); }
  // After each callback.
  void look();
  // Nothing is left to run at this moment.
  [[nodiscard]] std::string when_quiet() const;

  std::function<std::vector<Job>()> jobs;
  bool draining = false;  // the supervisor was told to end

 private:
  // An instance from its creation until its memory is back.
  struct Live {
    std::string model;
    core::PlacementOption at{};
    SteadyTime created{};
    bool by_idle_work = false;  // idle work loaded or used it
    std::optional<SteadyTime> ready{};
    bool going = false;  // is stopped, or has ended
    SteadyTime stopped{};
    bool closing = false;
    bool closing_told = false;  // that it was evicted, then
    bool stuck = false;
    std::optional<SteadyTime> exited{};  // as the supervisor knows
    SteadyTime last_client{};            // when one held it last
    SteadyTime maybe_client{};           // ditto, or one left whose place was on its way
  };
  using Counts = std::function<bool(const std::string& id, const Live& live)>;
  // What clients want of a model.
  struct Want {
    SteadyTime since{};       // at least as old as it may count (retry_grace)
    SteadyTime last_seen{};   // when somebody waited last
    SteadyTime left{};        // when one left without a place
    SteadyTime left_since{};  // of those who did at that moment, the oldest
  };

  // `known`: of one that died unseen, what it held.
  [[nodiscard]] core::DomainBytes held(const std::string& id, const Live& live,
                                       bool known = false) const;
  // What idle work has beside its instances.
  [[nodiscard]] core::DomainBytes extras() const;
  [[nodiscard]] std::string check_jobs(const std::string& id, const Live& live) const;
  // What processes that are gone for good have not given back.
  [[nodiscard]] core::DomainBytes lost() const;
  [[nodiscard]] core::DomainBytes sum(const Counts& counts, bool known = false) const;
  [[nodiscard]] bool fits(const core::DomainBytes& bytes, const core::DomainBytes& beside,
                          bool foreign = true) const;
  [[nodiscard]] bool any_fits(const std::string& model, const core::DomainBytes& beside) const;
  [[nodiscard]] bool clients_want(const std::string& model) const;
  [[nodiscard]] bool clients_hold(const std::string& instance) const;
  // The oldest that waits, by its own age.
  [[nodiscard]] std::optional<SteadyTime> oldest_waiter(const std::string& model) const;
  // At least as old as it counts for the supervisor; now: whoever waits came just now.
  [[nodiscard]] SteadyTime wanted_since(const std::string& model) const;
  [[nodiscard]] bool surely_evictable(const std::string& id, const Live& live,
                                      SteadyTime wanted_since) const;
  // No older than that, where its last instance closed for one that comes first (M12): at the
  // latest since then, and at least as old as it may count.
  [[nodiscard]] SteadyTime surely_since(const std::string& model, SteadyTime own) const;
  [[nodiscard]] SteadyTime maybe_since(const std::string& model) const;
  [[nodiscard]] std::string oldest_want() const;
  void note(const SimRequest& request);
  void ends_closing(const std::string& model);
  [[nodiscard]] std::string on_closing(const Event& event);
  [[nodiscard]] std::string on_evicted(const Event& event);
  [[nodiscard]] std::string on_refused(const Event& event) const;
  [[nodiscard]] std::string check_theft(const std::string& model,
                                        const core::PlacementOption& at) const;
  [[nodiscard]] std::string check_cost(const std::string& id, const Live& victim,
                                       SteadyTime wanted_since) const;
  [[nodiscard]] double cost_per_byte(const Live& live, core::DomainIndex domain) const;

  static bool is_client(const SimRequest& request) {
    return request.request_class() != residency::RequestClass::kIdle;
  }
  static bool waits(const SimRequest& request) {
    return request.state() == SimRequest::State::kWaiting;
  }

  SimWorld& world_;
  const Requests& requests_;
  const core::PlanPolicy policy_;
  const std::function<std::set<std::string>()> due_;
  std::map<std::string, Live> live_;          // by instance
  std::map<std::string, SteadyTime> proofs_;  // that are under way, and since when, by instance
  std::map<std::string, Want> wants_;         // by model
  // How old the want is that a model's last instance closed for; by that model.
  struct Behind {
    SteadyTime surely = SteadyTime::max();  // that is known when it is stopped
    SteadyTime maybe{};
  };
  std::map<std::string, Behind> behind_;
  SteadyTime foreign_changed_{};
  std::map<std::string, SteadyTime> answered_;  // when all who waited were, last; by model
  std::set<std::string> pinned_;
  std::set<std::string> torn_down_;  // models whose last load was, abandoned
};

}  // namespace berth::sim
