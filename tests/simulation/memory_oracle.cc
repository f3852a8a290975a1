#include "tests/simulation/memory_oracle.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/event.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_worker.h"

namespace berth::sim {

core::DomainBytes MemoryOracle::held(const std::string& id, const Live& live, bool known) const {
  if (known && !live.exited) return live.at.bytes;
  const auto worker = world_.workers.by_instance(id);
  // Its process is still being made, or is alive.
  if (!worker || !worker->ended()) return live.at.bytes;
  // What does not come back at all is nobody's after a while.
  if (live.exited && !proofs_.contains(id)) return {};
  return world_.memory.held_by(*worker);
}

core::DomainBytes MemoryOracle::sum(const Counts& counts, bool known) const {
  core::DomainBytes all;
  for (const auto& [id, live] : live_) {
    if (counts(id, live)) all += held(id, live, known);
  }
  return all;
}

core::DomainBytes MemoryOracle::extras() const {
  core::DomainBytes all;
  if (!jobs) return all;
  for (const Job& job : jobs()) all += job.extra;
  return all;
}

core::DomainBytes MemoryOracle::lost() const {
  core::DomainBytes all;
  for (const auto& [id, live] : live_) {
    if (!live.exited || proofs_.contains(id)) continue;
    all += world_.memory.held_by(*world_.workers.by_instance(id));
  }
  return all;
}

bool MemoryOracle::fits(const core::DomainBytes& bytes, const core::DomainBytes& beside,
                        bool foreign) const {
  const core::DomainBytes nobodys = lost();
  for (std::size_t i = 0; i < world_.memory.domains.size(); ++i) {
    const auto at = static_cast<core::DomainIndex>(i);
    core::Domain domain = world_.memory.domains[i];
    domain.foreign += nobodys[at];
    if (!foreign) domain.foreign = 0;
    if (bytes[at] > 0 && bytes[at] + beside[at] > domain.limit()) return false;
  }
  return true;
}

bool MemoryOracle::any_fits(const std::string& model, const core::DomainBytes& beside) const {
  const auto options = world_.memory.needs.find(model);
  return options != world_.memory.needs.end() &&
         std::ranges::any_of(options->second, [&](const core::PlacementOption& option) {
           return fits(option.bytes, beside);
         });
}

bool MemoryOracle::clients_want(const std::string& model) const {
  return std::ranges::any_of(requests_, [&](const auto& request) {
    return is_client(*request) && waits(*request) && request->model() == model;
  });
}

bool MemoryOracle::clients_hold(const std::string& instance) const {
  return std::ranges::any_of(requests_, [&](const auto& request) {
    return is_client(*request) && request->held_instance() == instance;
  });
}

std::optional<SteadyTime> MemoryOracle::oldest_waiter(const std::string& model) const {
  std::optional<SteadyTime> oldest;
  const auto answered = answered_.find(model);
  if (answered != answered_.end() && answered->second == world_.clock.now()) return {};
  for (const auto& request : requests_) {
    if (!is_client(*request) || !waits(*request) || request->model() != model) continue;
    if (request->deadline() <= world_.clock.now()) continue;  // its answer is on its way
    oldest = oldest ? std::min(*oldest, request->since()) : request->since();
  }
  return oldest;
}

SteadyTime MemoryOracle::wanted_since(const std::string& model) const {
  const SteadyTime now = world_.clock.now();
  const auto want = wants_.find(model);
  if (want == wants_.end()) return now;
  if (now <= want->second.last_seen + policy_.retry_grace) return want->second.since;
  // Somebody may wait since, and nothing has run meanwhile.
  const std::optional<SteadyTime> oldest = oldest_waiter(model);
  return oldest && *oldest <= want->second.last_seen ? want->second.since : now;
}

// --- what is seen

void MemoryOracle::note(const SimRequest& request) {
  const SteadyTime now = world_.clock.now();
  if (const auto live = live_.find(request.held_instance()); live != live_.end()) {
    if (is_client(request)) {
      live->second.last_client = now;
    } else {
      live->second.by_idle_work = true;
    }
  }
  if (!is_client(request) || !waits(request)) return;
  Want& want = wants_.try_emplace(request.model(), Want{.since = request.since(), .last_seen = now})
                   .first->second;
  if (request.since() > want.last_seen + policy_.retry_grace) want.since = request.since();
  want.since = std::min(want.since, request.since());
  want.last_seen = now;
}

void MemoryOracle::on_leaves(const SimRequest& request) {
  if (request.turned_away()) return;
  note(request);
  if (is_client(request) && waits(request)) {
    Want& want = wants_.at(request.model());
    const SteadyTime now = world_.clock.now();
    want.left_since =
        want.left == now ? std::min(want.left_since, request.since()) : request.since();
    want.left = now;
  }
  // Its place may have been on its way.
  for (auto& [id, live] : live_) {
    if (live.model != request.model()) continue;
    if (is_client(request)) {
      live.maybe_client = world_.clock.now();
    } else {
      live.by_idle_work = true;
    }
  }
}

void MemoryOracle::look() {
  for (const auto& request : requests_) {
    // Whether it may wait at all it hears within this instant.
    if (waits(*request) && request->since() == world_.clock.now()) continue;
    note(*request);
  }
  std::erase_if(live_, [&](const auto& one) {
    return one.second.exited && !proofs_.contains(one.first) &&
           world_.memory.held_by(*world_.workers.by_instance(one.first)).empty();
  });
}

void MemoryOracle::on_served(const SimRequest& request) {
  if (!is_client(request)) return;
  const auto want = wants_.find(request.model());
  if (want == wants_.end()) return;
  std::optional<SteadyTime> oldest = oldest_waiter(request.model());
  // They may have left after it was given its place, of which it hears now.
  if (want->second.left == world_.clock.now()) {
    oldest = std::min(oldest.value_or(want->second.left_since), want->second.left_since);
  }
  if (oldest) {
    want->second.since = *oldest;
  } else {
    wants_.erase(want);
  }
}

void MemoryOracle::on_pin(const std::string& model, bool pinned) {
  if (pinned) {
    pinned_.insert(model);
  } else {
    pinned_.erase(model);
  }
}

std::string MemoryOracle::on_event(const Event& event) {
  const std::string name(event.name);
  if (name == "model.closing") return on_closing(event);
  if (name == "model.evicted") return on_evicted(event);
  if (name == "model.refused") {
    answered_[SimEvents::field(event, "model")] = world_.clock.now();
    return on_refused(event);
  }
  if (name == "memory.returned" || name == "memory.not_returned") {
    return proofs_.erase(SimEvents::field(event, "instance")) > 0 ? "" : "a proof of nothing";
  }
  // Why a load failed may be told when its memory is back already.
  if (name == "load.failed") torn_down_.erase(SimEvents::field(event, "model"));
  const auto at = live_.find(SimEvents::field(event, "instance"));
  if (at == live_.end()) return {};
  Live& live = at->second;
  const SteadyTime now = world_.clock.now();
  if (name == "load.started" && SimEvents::field(event, "cause") == "idle_work") {
    live.by_idle_work = true;
  } else if (name == "load.ready") {
    live.ready = now;
    torn_down_.erase(live.model);
  } else if (name == "model.reopened") {
    live.closing = false;
    behind_.erase(live.model);
  } else if (name == "instance.stopping") {
    live.going = true;
    live.stopped = now;
    ends_closing(live.model);
  } else if (name == "instance.stuck") {
    live.stuck = true;
  } else if (name == "instance.exited") {
    live.exited = now;
    if (!world_.memory.domains.empty()) proofs_[at->first] = now;
    if (!live.going) live.stopped = now;
    ends_closing(live.model);
    live.going = true;
    live.stuck = false;
  } else if (name == "load.failed" || name == "load.interrupted") {
    if (!world_.workers.by_instance(at->first)) live_.erase(at);
  }
  return {};
}

std::string MemoryOracle::on_admit(const std::string& model, const std::string& instance,
                                   const core::PlacementOption& at) {
  if (world_.memory.domains.empty()) return {};
  const auto everything = [](const std::string& /*id*/, const Live& /*live*/) { return true; };
  std::string problem;
  if (!fits(at.bytes, sum(everything) + extras() + world_.memory.bank))
    problem = model + " was admitted beyond the limit";
  if (problem.empty()) problem = check_theft(model, at);
  Live& live = live_[instance];
  live.model = model;
  live.at = at;
  live.created = world_.clock.now();
  behind_.erase(model);
  return problem;
}

void MemoryOracle::on_measured(const std::string& instance, const core::DomainBytes& bytes) {
  if (const auto live = live_.find(instance); live != live_.end()) live->second.at.bytes = bytes;
}

// M9: where an older one would have fitted as soon as what goes is gone, it does so still.
std::string MemoryOracle::check_theft(const std::string& model,
                                      const core::PlacementOption& at) const {
  const auto stays = [](const std::string& /*id*/, const Live& live) {
    return live.stuck || (!live.going && !live.closing);
  };
  const bool unclear = std::ranges::any_of(live_, [&](const auto& one) {
    if (one.second.going) return one.second.stopped <= foreign_changed_;
    // It has died, and that is not noticed yet.
    const auto worker = world_.workers.by_instance(one.first);
    return worker && worker->ended();
  });
  if (unclear) return {};
  const core::DomainBytes before = sum(stays) + extras();
  const std::string older = oldest_want();
  const auto oldest = oldest_waiter(older);
  if (older.empty() || older == model || !oldest || !due_().contains(older)) return {};
  if (clients_want(model) && surely_since(older, *oldest) >= maybe_since(model)) {
    return {};
  }
  if (any_fits(older, before) && !any_fits(older, before + at.bytes)) {
    std::string text = model + " took the room that was being made for " + older;
    const core::DomainBytes nobodys = lost();
    for (std::size_t i = 0; i < world_.memory.domains.size(); ++i) {
      const core::Domain& domain = world_.memory.domains[i];
      const auto index = static_cast<core::DomainIndex>(i);
      text += "; " + domain.id + ": budget " + std::to_string(domain.budget >> 20U) + ", foreign " +
              std::to_string(domain.foreign >> 20U) + ", lost " +
              std::to_string(nobodys[index] >> 20U) + ", stay " +
              std::to_string(before[index] >> 20U);
    }
    return text;
  }
  return {};
}

// It closed for somebody who had come before.
void MemoryOracle::ends_closing(const std::string& model) {
  const auto behind = behind_.find(model);
  if (behind == behind_.end()) return;
  behind->second.surely = std::min(behind->second.surely, world_.clock.now());
}

SteadyTime MemoryOracle::surely_since(const std::string& model, SteadyTime own) const {
  const auto behind = behind_.find(model);
  if (behind == behind_.end()) return own;
  return std::max(own, std::min(behind->second.surely, world_.clock.now()) + Duration(1));
}

SteadyTime MemoryOracle::maybe_since(const std::string& model) const {
  const SteadyTime own = wanted_since(model);
  const auto behind = behind_.find(model);
  return behind == behind_.end() ? own : std::max(own, behind->second.maybe + Duration(1));
}

// The model that clients have surely wanted the longest; empty: that is not sure.
std::string MemoryOracle::oldest_want() const {
  std::set<std::string> wanted;
  for (const auto& request : requests_) {
    if (is_client(*request) && waits(*request)) wanted.insert(request->model());
  }
  std::optional<SteadyTime> first;
  std::string model;
  for (const std::string& name : wanted) {
    const std::optional<SteadyTime> oldest = oldest_waiter(name);
    if (!oldest || (first && *first <= surely_since(name, *oldest))) continue;
    first = surely_since(name, *oldest);
    model = name;
  }
  for (const std::string& name : wanted) {
    if (name != model && maybe_since(name) <= first) return {};
  }
  return model;
}

}  // namespace berth::sim
