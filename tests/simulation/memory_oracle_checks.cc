#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/event.h"
#include "tests/simulation/memory_oracle.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_worker.h"

// What the oracle judges: who is taken away, who is refused, and who waits.
namespace berth::sim {
namespace {

constexpr Duration kProofWait = std::chrono::seconds(5);

// The only domain that it uses; absent: there are several.
std::optional<core::DomainIndex> only_domain(const core::DomainBytes& bytes) {
  std::optional<core::DomainIndex> only;
  for (core::DomainIndex i = 0; i < core::kMaxDomains; ++i) {
    if (bytes[i] == 0) continue;
    if (only) return std::nullopt;
    only = i;
  }
  return only;
}

}  // namespace

// --- who is taken away

std::string MemoryOracle::on_closing(const Event& event) {
  const std::string for_model = SimEvents::field(event, "for_model");
  const auto at = live_.find(SimEvents::field(event, "instance"));
  if (at == live_.end()) return "an instance closes that there is not";
  Live& live = at->second;
  if (live.going || live.closing) return live.model + " closes while it is going";
  if (pinned_.contains(live.model)) return live.model + " closes although it is pinned";
  if (!clients_want(for_model)) return live.model + " closes for idle work or nobody";
  live.closing = true;
  const SteadyTime maybe = wanted_since(for_model);
  behind_[live.model] = {.maybe = maybe};
  return world_.clock.now() < maybe + policy_.max_wait ? live.model + " is closed before max_wait"
                                                       : "";
}

std::string MemoryOracle::on_evicted(const Event& event) {
  const std::string id = SimEvents::field(event, "instance");
  const std::string cause = SimEvents::field(event, "cause");
  const std::string for_model = SimEvents::field(event, "for_model");
  const auto at = live_.find(id);
  if (at == live_.end()) return "an instance is evicted that there is not";
  Live& live = at->second;
  const SteadyTime now = world_.clock.now();
  if (cause == "closing") {
    // It may have gone on closing for another one than it was closed for.
    behind_[live.model].surely = oldest_waiter(for_model).value_or(now);
    return std::exchange(live.closing_told, true) || !live.closing
               ? live.model + " is evicted as closing, which it was not"
               : "";
  }
  if (live.going) return live.model + " is evicted while it is going";
  if (pinned_.contains(live.model)) return live.model + " is evicted although it is pinned";
  if (!clients_want(for_model)) return live.model + " is evicted for idle work or nobody";
  const SteadyTime since = wanted_since(for_model);
  const bool wanted = std::ranges::any_of(requests_, [&](const auto& request) {
    return is_client(*request) && waits(*request) && request->model() == live.model &&
           request->deadline() > now && request->since() > live.created;
  });
  if (std::string problem = check_jobs(id, live); !problem.empty()) return problem;
  if (clients_hold(id) || wanted) return live.model + " is evicted although clients want it";
  if (cause == "abandoned_load") {
    if (live.ready) return live.model + " is ready and evicted as a load";
    if (torn_down_.contains(live.model)) return "a load of " + live.model + " is torn down again";
    torn_down_.insert(live.model);
    const auto own = wants_.find(live.model);
    if (own != wants_.end() && now < own->second.last_seen + policy_.retry_grace) {
      return "a load of " + live.model + " is torn down within retry_grace";
    }
    return {};
  }
  if (cause == "idle_work") {
    const bool idle = std::ranges::any_of(requests_, [&](const auto& request) {
      return !is_client(*request) && request->model() == live.model;
    });
    return idle || live.by_idle_work ? "" : live.model + " is no idle work's";
  }
  if (!live.ready) return live.model + " is evicted while it loads";
  const SteadyTime idle = std::max(*live.ready, live.last_client);
  if (!live.by_idle_work && now < std::min(idle, since) + policy_.grace) {
    using Seconds = std::chrono::duration<double>;
    return live.model + " is evicted within its grace of " +
           std::to_string(Seconds(policy_.grace).count()) + " s, idle for " +
           std::to_string(Seconds(now - idle).count()) + " s, for one that waits for " +
           std::to_string(Seconds(now - since).count()) + " s";
  }
  const auto everything = [](const std::string& /*id*/, const Live& /*live*/) { return true; };
  if (!world_.memory.bank.empty() && oldest_want() == for_model && proofs_.empty() &&
      any_fits(for_model, sum(everything, true) + extras())) {
    return live.model + " is evicted although the bank would do";
  }
  // What older ones count on is not for a younger one.
  // Whether its demand counts for longer than its waiters are there depends on how they ended.
  return oldest_want() == for_model ? check_cost(id, live, oldest_waiter(for_model).value_or(now))
                                    : "";
}

// I4: idle work is told, and has its time to yield.
std::string MemoryOracle::check_jobs(const std::string& id, const Live& live) const {
  if (!jobs) return {};
  for (const Job& job : jobs()) {
    if (job.instance != id) continue;
    if (!job.until) return live.model + " is taken from a job that was not told to yield";
    if (world_.clock.now() < *job.until) {
      return live.model + " is taken from a job that was about to yield";
    }
  }
  return {};
}

bool MemoryOracle::surely_evictable(const std::string& id, const Live& live,
                                    SteadyTime wanted_since) const {
  if (!live.ready || live.going || live.closing || live.by_idle_work) return false;
  if (pinned_.contains(live.model) || clients_hold(id) || clients_want(live.model)) return false;
  const SteadyTime idle = std::max({*live.ready, live.last_client, live.maybe_client});
  if (idle == world_.clock.now()) return false;  // a place may be on its way back
  return std::min(idle, wanted_since) + policy_.grace < world_.clock.now();
}

double MemoryOracle::cost_per_byte(const Live& live, core::DomainIndex domain) const {
  using Seconds = std::chrono::duration<double>;
  const SteadyTime used = std::max(live.created, live.last_client);
  const double half = Seconds(policy_.recency_half).count();
  const double unused = Seconds(world_.clock.now() - used).count();
  const double reload = Seconds(*live.ready - live.created).count();
  return reload * half / (half + unused) / static_cast<double>(live.at.bytes[domain]);
}

// M8: nothing that gives at least as much in the same place is clearly cheaper.
std::string MemoryOracle::check_cost(const std::string& id, const Live& victim,
                                     SteadyTime wanted_since) const {
  const auto domain = only_domain(victim.at.bytes);
  if (!domain) return {};
  for (const auto& [other_id, other] : live_) {
    if (other_id == id || only_domain(other.at.bytes) != domain) continue;
    if (other.at.bytes[*domain] < victim.at.bytes[*domain]) continue;
    // One who left may have had his place: then it was used.
    if (other.maybe_client > other.last_client) continue;
    if (!surely_evictable(other_id, other, wanted_since)) continue;
    if (cost_per_byte(other, *domain) < 0.9 * cost_per_byte(victim, *domain)) {
      return victim.model + " is evicted although " + other.model + " is cheaper";
    }
  }
  return {};
}

// --- who is refused, and who waits

std::string MemoryOracle::on_refused(const Event& event) const {
  const std::string model = SimEvents::field(event, "model");
  const std::string why = SimEvents::field(event, "why");
  const auto options = world_.memory.needs.find(model);
  if (options == world_.memory.needs.end()) return model + " is refused and needs nothing";
  const auto immovable = [&](const std::string& /*id*/, const Live& live) {
    return live.stuck || (!live.going && pinned_.contains(live.model));
  };
  const core::DomainBytes there = sum(immovable, true);
  for (const core::PlacementOption& option : options->second) {
    const bool would = why == "never_fits"    ? fits(option.bytes, {}, false)
                       : why == "foreign_use" ? fits(option.bytes, there)
                                              : fits(option.bytes, there, false);
    if (would) return model + " is refused, for " + why + ", although it would fit";
  }
  return {};
}

std::string MemoryOracle::when_quiet() const {
  if (world_.memory.domains.empty()) return {};
  const SteadyTime now = world_.clock.now();
  for (const auto& [id, since] : proofs_) {
    if (now > since + kProofWait) return "a proof takes longer than 5 s";
  }
  for (const auto& [id, live] : live_) {
    const std::string& model = live.model;
    const bool for_somebody = std::ranges::any_of(requests_, [&](const auto& request) {
      return is_client(*request) && waits(*request) && request->model() != model;
    });
    if (live.closing && !live.going && !draining && !for_somebody) {
      return live.model + " closes for nobody";
    }
  }
  // Nobody else's room is held against the oldest.
  const std::string model = oldest_want();
  if (model.empty() || !proofs_.empty()) return {};
  const std::optional<SteadyTime> oldest = oldest_waiter(model);
  if (!oldest || !due_().contains(model)) return {};
  for (const auto& [id, live] : live_) {
    if ((live.going && !live.stuck) || live.closing) return {};
    // It has died, and that is not noticed yet.
    const auto worker = world_.workers.by_instance(id);
    if (worker && worker->ended() && !live.exited) return {};
  }
  if (world_.memory.shrinking()) return {};
  // Idle work that was told to yield may take its time, and gives the room then.
  const std::vector<Job> yielding = jobs ? jobs() : std::vector<Job>();
  if (std::ranges::any_of(yielding,
                          [&](const Job& job) { return job.until && now < *job.until; })) {
    return {};
  }
  const SteadyTime since = *oldest;
  const auto stays = [&](const std::string& id, const Live& live) {
    return !surely_evictable(id, live, since);
  };
  if (any_fits(model, sum(stays) + extras())) return "no room is made for " + model;
  if (now <= since + std::max(policy_.max_wait, policy_.grace)) return {};
  // An abandoned load may go first, once its grace is over.
  for (const auto& [id, live] : live_) {
    if (!live.ready && !live.going && !clients_want(live.model)) return {};
  }
  const auto cannot_close = [&](const std::string& id, const Live& live) {
    return stays(id, live) && (!live.ready || pinned_.contains(live.model) || live.stuck);
  };
  const bool one_way = world_.memory.needs.at(model).size() == 1;
  if (one_way && any_fits(model, sum(cannot_close) + extras())) return "nobody closes for " + model;
  return {};
}

}  // namespace berth::sim
