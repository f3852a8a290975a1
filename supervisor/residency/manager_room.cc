#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/core/mutation.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/manager.h"
#include "supervisor/residency/manager_words.h"
#include "supervisor/residency/room.h"
#include "supervisor/residency/waiter.h"

// What making room needs of the models and their instances.
namespace berth::residency {
namespace {

core::EntryState entry_state(core::InstanceState state) {
  switch (state) {
    case core::InstanceState::kAbsent:
    case core::InstanceState::kStarting:
      return core::EntryState::kStarting;
    case core::InstanceState::kLoading:
      return core::EntryState::kLoading;
    case core::InstanceState::kReady:
    case core::InstanceState::kBusy:
      return core::EntryState::kReady;
    case core::InstanceState::kClosing:
      return core::EntryState::kClosing;
    case core::InstanceState::kStuck:
      return core::EntryState::kStuck;
    case core::InstanceState::kDraining:
    case core::InstanceState::kStopping:
    case core::InstanceState::kFailed:
    case core::InstanceState::kGone:
      break;
  }
  return core::EntryState::kLeaving;
}

}  // namespace

std::vector<Demand> Manager::demands() {
  std::vector<Demand> all;
  if (drain_until_) return all;
  for (auto& [name, berth] : berths_) {
    if (berth.queue.empty()) continue;
    const bool doubles = core::mutated(core::Mutation::kDoubleLoad);
    if (berth.current != nullptr && !doubles) continue;
    if (!is_due(berth)) continue;
    if (!renew(berth)) continue;
    Demand& demand = all.emplace_back();
    demand.model = berth.model;
    demand.may_start = doubles || leaving(name) == nullptr;
    demand.since = SteadyTime::max();
    const bool clients = berth.queue.clients() > 0;
    demand.caller = clients ? core::CallerClass::kOperator : core::CallerClass::kIdle;
    for (const core::Ticket ticket : berth.queue.tickets()) {
      const Waiter& waiter = waiters_.at(ticket);
      if (clients && waiter.request_class == RequestClass::kIdle) continue;
      if (waiter.request_class == RequestClass::kForeground) {
        demand.caller = core::CallerClass::kForeground;
      }
      demand.since = std::min(demand.since, waiter.since);
      demand.until = std::max(demand.until, waiter.deadline);
    }
    if (clients && berth.carried) demand.since = std::min(demand.since, *berth.carried);
    if (berth.behind) demand.since = std::max(demand.since, *berth.behind + Duration(1));
  }
  return all;
}

std::shared_ptr<const catalog::Model> Manager::present(
    const std::shared_ptr<const catalog::Model>& model) const {
  if (!environment_.find_model) return model;
  auto found = environment_.find_model(model->name);
  // What was its name may be another one's alias now.
  return found && found->name == model->name ? found : nullptr;
}

bool Manager::renew(Berth& berth) {
  const auto now = present(berth.model);
  if (!now) {
    refuse_waiters(berth, vanished_error(berth.model->name));
    return false;
  }
  berth.model = now;
  if (now->problem.empty()) return true;
  refuse_waiters(berth, problem_error(*now));
  return false;
}

void Manager::describe(const Uuid& id, core::Entry& entry) const {
  const auto found = instances_.find(id);
  entry.state = core::EntryState::kLeaving;
  if (found == instances_.end()) return;
  const Instance& instance = *found->second;
  const Berth& berth = berths_.at(instance.model().name);
  const InstanceUse& use = instance.use();
  entry.state = entry_state(instance.machine().state());
  entry.pinned = pinned(instance.model().name);
  entry.clients = use.clients;
  entry.soft = use.soft;
  entry.idle_since = use.idle_since;
  entry.last_used = use.last_used;
  entry.used_last_by_idle_work = use.last_by_idle_work;
  entry.reload = instance.load_time();
  if (berth.current != &instance) return;
  const std::size_t waiting = berth.queue.clients();
  entry.clients += static_cast<std::uint32_t>(waiting);
  entry.soft += static_cast<std::uint32_t>(berth.queue.size() - waiting);
  entry.torn_down_before = berth.torn_down;
  const bool loads = entry.state != core::EntryState::kReady;
  if (loads && berth.had_client) {
    entry.used_last_by_idle_work = false;
    if (waiting == 0) entry.abandoned_since = berth.client_left;
  }
}

void Manager::memory_changed() {
  std::vector<std::pair<std::string, std::uint64_t>> budgets;
  if (environment_.memory_access.domains) {
    for (const core::Domain& domain : environment_.memory_access.domains()) {
      budgets.emplace_back(domain.id, domain.budget);
    }
  }
  // L23: one more thing that failures depend on.
  if (budgets != budgets_) {
    budgets_ = std::move(budgets);
    catalog_changed();
  }
  room_.changed();
}

std::optional<SteadyTime> Manager::carried(const std::string& model) const {
  const auto found = berths_.find(model);
  if (found == berths_.end()) return std::nullopt;
  const Berth& berth = found->second;
  const bool over = berth.queue.clients() == 0 &&
                    environment_.clock.now() > berth.client_left + limits_.plan.retry_grace;
  if (over || !berth.carried) return std::nullopt;
  return berth.behind ? std::max(*berth.carried, *berth.behind + Duration(1)) : *berth.carried;
}

void Manager::check(const std::shared_ptr<const catalog::Model>& model,
                    std::function<void(Status)> done) {
  const auto& look = environment_.memory_access.check;
  if (look) return look(model, std::move(done));
  environment_.clock.post([done = std::move(done)] { done({}); });
}

void Manager::admit(const Demand& demand, const LaunchPlan& plan) {
  start(berths_.at(demand.model->name), plan);
}

void Manager::evict(const core::Victim& victim) {
  const std::shared_ptr<Instance> instance = find(victim.model, victim.id);
  if (!instance) return;
  if (victim.kind == core::VictimKind::kAbandonedLoad) berths_.at(victim.model).torn_down = true;
  instance->stop(core::StopCause::kEvicted);
}

void Manager::closes_for(const Uuid& id, SteadyTime since) {
  const auto found = instances_.find(id);
  if (found != instances_.end()) berths_.at(found->second->model().name).behind = since;
}

void Manager::close(const Uuid& id) {
  const auto found = instances_.find(id);
  if (found == instances_.end()) return;
  const std::shared_ptr<Instance> instance = found->second;
  instance->close(core::StopCause::kEvicted, limits_.swap_drain
                                                 ? environment_.clock.now() + *limits_.swap_drain
                                                 : SteadyTime::max());
}

bool Manager::reopen(const Uuid& id) {
  const auto found = instances_.find(id);
  if (found == instances_.end() || drain_until_) return false;
  const std::shared_ptr<Instance> instance = found->second;
  const core::InstanceMachine& machine = instance->machine();
  if (machine.state() != core::InstanceState::kClosing) return false;
  Berth& berth = berths_.at(instance->model().name);
  if (berth.current != nullptr || machine.cause() != core::StopCause::kEvicted) return false;
  berth.current = instance.get();
  berth.behind.reset();
  environment_.events.emit_typed(
      events::ModelReopened{.model = instance->model().name, .instance = instance->id_text()});
  instance->pin(pinned(instance->model().name));  // what was pinned or unpinned meanwhile
  instance->reopen();
  return true;
}

void Manager::refuse_demand(const std::string& model, const Error& error) {
  const auto berth = berths_.find(model);
  if (berth != berths_.end()) refuse_waiters(berth->second, error);
}

void Manager::on_room_wait(const std::string& model) {
  report_soon(berths_.at(model));
}

}  // namespace berth::residency
