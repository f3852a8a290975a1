#include "supervisor/residency/manager.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/mutation.h"
#include "supervisor/core/thread_shares.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/lease.h"
#include "supervisor/residency/waiter.h"

namespace berth::residency {
namespace {

using core::mutated;
using core::Mutation;

core::InstancePolicy policy_of(const catalog::ModelSettings& settings, const Limits& limits) {
  core::InstancePolicy policy;
  if (settings.load_timeout > Duration::zero()) policy.load_timeout = settings.load_timeout;
  // A program that is not ours says nothing of its progress.
  if (settings.kind == catalog::Kind::kCommand) policy.load_stall = std::chrono::seconds(180);
  if (settings.load_stall) policy.load_stall = *settings.load_stall;
  policy.wedge_after = settings.wedge_after;
  // Nor has it a counter that could stand still: off, unless the operator knows better (L9).
  if (settings.kind == catalog::Kind::kCommand && !settings.wedge_after) {
    policy.wedge_after = Duration::zero();
  }
  policy.ttl = settings.ttl;
  policy.term_wait = limits.term_wait;
  policy.kill_wait = limits.kill_wait;
  return policy;
}

}  // namespace

Berth& Manager::berth_of(const std::shared_ptr<const catalog::Model>& model) {
  Berth& berth =
      berths_.try_emplace(model->name, model, limits_.waiters_per_model, total_).first->second;
  berth.model = model;
  return berth;
}

void Manager::start_if_wanted(Berth& berth) {
  if (drain_until_ || berth.queue.empty()) return;
  if (berth.current != nullptr && !mutated(Mutation::kDoubleLoad)) return;
  if (room_.counts()) return room_.demanded();
  // A stuck one is not waited for.
  const bool last_goes = leaving(berth.model->name) != nullptr;
  if (last_goes && !mutated(Mutation::kDoubleLoad)) return;
  if (is_due(berth) && renew(berth)) start(berth, {});
}

bool Manager::is_due(Berth& berth) {
  const bool pending = verdict_pending(berth.model->name) && !operator_waits(berth);
  if (pending && !mutated(Mutation::kDoubleLoad)) return false;
  const SteadyTime now = environment_.clock.now();
  if (berth.back_off.not_before() > now && !mutated(Mutation::kNoBackOff)) {
    if (berth.back_off_timer.armed()) return false;
    berth.back_off_timer =
        environment_.clock.sleep_until(berth.back_off.not_before(), [this, &berth] {
          berth.back_off_timer.reset();
          start_if_wanted(berth);
        });
    return false;
  }
  return true;
}

void Manager::start(Berth& berth, const LaunchPlan& plan) {
  const auto first = waiters_.find(berth.queue.front().value_or(0));
  const RequestClass request_class =
      first == waiters_.end() ? RequestClass::kForeground : first->second.request_class;
  const Uuid id = environment_.ids.next();
  const auto find = [weak = weak_from_this(),
                     model = berth.model->name](const Uuid& wanted) -> std::shared_ptr<Instance> {
    const auto self = weak.lock();
    return self ? self->find(model, wanted) : nullptr;
  };
  const auto instance = std::make_shared<Instance>(environment_, *this, find, berth.model,
                                                   policy_of(berth.model->settings, limits_), id,
                                                   request_class, plan);
  instances_.emplace(id, instance);
  berth.current = instance.get();
  berth.had_client = berth.queue.clients() > 0;
  berth.behind.reset();
  if (pinned(berth.model->name)) instance->pin(true);
  failures_.load_started(*berth.model, id);
  room_.charge(id, berth.model->name, plan.at);
  instance->begin();
}

void Manager::serve(Berth& berth) {
  // A place that is given settles the instance, which serves: they get theirs in their order.
  if (berth.serving) return;
  berth.serving = true;
  bool moved = false;
  while (berth.current != nullptr && berth.current->free_places() > 0) {
    const std::optional<core::Ticket> ticket = berth.queue.pop();
    if (!ticket) break;
    moved = true;
    const auto waiter = waiters_.find(*ticket);
    if (waiter == waiters_.end()) continue;
    if (mutated(Mutation::kLostWaiter) && berth.queue.size() % 2 == 1) continue;
    answer(*ticket, grant(*berth.current, waiter->second));
  }
  berth.serving = false;
  if (moved) report_soon(berth);
}

Lease Manager::grant(Instance& instance, const Waiter& waiter) {
  const bool client = waiter.request_class != RequestClass::kIdle;
  if (client) note_served(instance, waiter);
  instance.grant_lease(client);
  share_cores();
  Lease::Impl::Place place;
  place.model = instance.model().name;
  place.instance = instance.machine().id();
  place.client = client;
  place.window = instance.ready().window;
  place.longest_token_bytes = instance.ready().longest_token_bytes;
  place.load_began = instance.machine().created().steady;
  place.ready_since = instance.machine().ready_since()->steady;
  return Lease(std::make_unique<Lease::Impl>(environment_.clock, weak_from_this(),
                                             instance.worker(), std::move(place)));
}

void Manager::note_served(const Instance& instance, const Waiter& waiter) {
  Berth& berth = berths_.at(waiter.model);
  berth.had_client = true;
  berth.carried.reset();
  RoomCounters& counters = room_.counters();
  counters.worst_wait = std::max(counters.worst_wait, environment_.clock.now() - waiter.since);
  if (room_.older_waits_for(instance.machine().id(), waiter.since)) ++counters.swaps_avoided;
}

void Manager::lease_returned(const std::string& model, const Uuid& instance, bool client) {
  if (mutated(Mutation::kLeaseNotReturned)) return;
  const std::shared_ptr<Instance> there = find(model, instance);
  if (!there) return;
  Berth& berth = berths_.at(model);
  if (berth.current == there.get()) {
    berth.pace.on_free(environment_.clock.now(), berth.queue.clients() > 0);
  }
  there->lease_returned(client);
  share_cores();
  end_job_load(berth);
}

void Manager::end_job_load(Berth& berth) {
  Instance* const current = berth.current;
  if (current == nullptr || berth.had_client || !berth.queue.empty()) return;
  if (current->request_class() != RequestClass::kIdle || pinned(berth.model->name)) return;
  const std::shared_ptr<Instance> keep = current->shared_from_this();
  if (keep->machine().leases() == 0) keep->stop(core::StopCause::kJobEnded);
}

void Manager::share_cores() {
  if (limits_.cores == 0) return;
  std::vector<Instance*> working;
  std::vector<std::uint32_t> wanted;
  for (const auto& [id, instance] : instances_) {
    if (instance->machine().leases() == 0) continue;
    working.push_back(instance.get());
    wanted.push_back(instance->ready().threads);
  }
  const auto shares = core::share_threads(limits_.cores, wanted);
  for (std::size_t i = 0; i < working.size(); ++i) working[i]->use_threads(shares[i]);
}

LoadBasis Manager::on_instance_prepared(Instance& instance) {
  return failures_.load_prepared(instance.model(), instance.machine().id());
}

void Manager::on_instance_ready(Instance& instance) {
  failures_.loaded(instance.model().name, instance.machine().id());
  if (environment_.load_meter != nullptr) {
    const auto charge = environment_.load_meter->loaded(instance.machine().id(), instance.ready());
    if (charge) room_.recharge(instance.machine().id(), *charge);
  }
  const auto berth = berths_.find(instance.model().name);
  if (berth == berths_.end()) return;
  berth->second.torn_down = false;
  berth->second.last_load = instance.load_time();
  if (berth->second.current == &instance) serve(berth->second);
}

void Manager::on_instance_unavailable(Instance& instance) {
  Berth& berth = berths_.at(instance.model().name);
  if (berth.current != &instance) return;
  berth.current = nullptr;
  berth.pace.pause();
  const core::InstanceResult result = instance.machine().result().value;
  if (result == core::InstanceResult::kFailedOwn || result == core::InstanceResult::kFailedLaunch) {
    // They waited for this load; who comes from now on waits for the next one.
    instance.doomed() = berth.queue.detach_all();
  }
}

void Manager::on_load_failed(Instance& instance, const Error& error) {
  Berth& berth = berths_.at(instance.model().name);
  berth.torn_down = false;
  for (const core::Ticket ticket : std::exchange(instance.doomed(), {})) {
    if (berth.queue.remove(ticket)) answer(ticket, error);
  }
  core::FailureRecord record = instance.failure_record(*instance.machine().failure());
  if (environment_.load_meter != nullptr) {
    environment_.load_meter->failed(instance.machine().id(), record);
  }
  if (failures_.load_failed(std::move(record))) {
    refuse_clients(berth, error);
  }
}

void Manager::on_load_interrupted(Instance& instance) {
  failures_.load_interrupted(instance.model().name, instance.machine().id());
}

void Manager::on_instance_progress(Instance& instance) {
  report_soon(berths_.at(instance.model().name));
}

void Manager::on_instance_settled(Instance& instance) {
  const core::InstanceMachine& machine = instance.machine();
  Berth& berth = berths_.at(instance.model().name);
  const core::InstanceState state = machine.state();
  if (state == core::InstanceState::kDraining || state == core::InstanceState::kStopping) {
    room_.note_stop(machine.id(), instance.pid(),
                    machine.cause() == core::StopCause::kEvicted && !drain_until_);
  }
  if (is_terminal(state)) room_.note_gone(machine.id(), instance.pid());
  if (machine.finished()) {
    const auto node = instances_.extract(machine.id());
    if (node.empty()) return;
    if (environment_.load_meter != nullptr) environment_.load_meter->gone(machine.id());
    if (machine.ready_since()) on_ready_end(berth, instance);
    // The process and its connection may still be calling: they go when nothing of them runs.
    environment_.clock.post([gone = node.mapped()] {});
    share_cores();
  }
  serve(berth);
  start_if_wanted(berth);
  if (is_terminal(state)) {
    room_.changed();
  } else {
    room_.changed(machine.id());
  }
  report_soon(berth);
  finish_shutdown();
}

std::shared_ptr<Instance> Manager::find(const std::string& model, const Uuid& id) const {
  const auto found = instances_.find(id);
  if (found != instances_.end()) return found->second;
  if (mutated(Mutation::kNoInstanceCheck)) {
    const auto berth = berths_.find(model);
    if (berth != berths_.end() && berth->second.current != nullptr) {
      return berth->second.current->shared_from_this();
    }
  }
  return nullptr;
}

bool Manager::verdict_pending(const std::string& model) const {
  return std::any_of(instances_.begin(), instances_.end(), [&model](const auto& one) {
    const core::InstanceMachine& machine = one.second->machine();
    return one.second->model().name == model && is_terminal(machine.state()) && !machine.finished();
  });
}

bool Manager::operator_waits(const Berth& berth) const {
  const auto tickets = berth.queue.tickets();
  return std::any_of(tickets.begin(), tickets.end(),
                     [this](core::Ticket ticket) { return is_operators(ticket); });
}

bool Manager::is_operators(core::Ticket ticket) const {
  const auto waiter = waiters_.find(ticket);
  return waiter != waiters_.end() && waiter->second.request_class == RequestClass::kOperator;
}

Instance* Manager::leaving(const std::string& model) const {
  const auto berth = berths_.find(model);
  const Instance* const current = berth == berths_.end() ? nullptr : berth->second.current;
  Instance* newest = nullptr;
  for (const auto& [id, instance] : instances_) {
    const core::InstanceState state = instance->machine().state();
    if (instance->model().name == model && instance.get() != current && !is_terminal(state) &&
        state != core::InstanceState::kStuck) {
      newest = instance.get();
    }
  }
  return newest;
}

}  // namespace berth::residency
