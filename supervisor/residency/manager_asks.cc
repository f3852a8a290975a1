#include "supervisor/residency/manager.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/manager_words.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/waiter.h"

// What operators and clients ask.
namespace berth::residency {
namespace {

constexpr std::size_t kUnloadCalls = 256;

}  // namespace

void Manager::unload(const std::string& model, bool force,
                     std::function<void(Result<UnloadOutcome>)> done) {
  const auto refuse = [this, &done](Error error) {
    environment_.clock.post(
        [done = std::move(done), error = std::move(error)] { done(fail(error)); });
  };
  const auto found = berths_.find(model);
  const std::size_t waiting = found == berths_.end() ? 0 : found->second.queue.size();
  Instance* const current = found == berths_.end() ? nullptr : found->second.current;
  Instance* const instance = current != nullptr ? current : leaving(model);
  if (instance == nullptr) {
    for (const auto& [id, other] : instances_) {
      if (other->model().name == model && other->machine().state() == core::InstanceState::kStuck) {
        return other->await_end(std::move(done));
      }
    }
    if (force && waiting > 0) {
      refuse_waiters(found->second, {Reason::kConflict, model + " was unloaded by force."});
    }
    return refuse({Reason::kNotFound, model + " is not resident."});
  }
  if (!force && pinned(model)) {
    return refuse(conflict_error(
        *instance,
        pinned_by_configuration(model)
            ? model + " is pinned by the configuration; take the pin out there, or unload it by "
                      "force."
            : model + " is pinned; unpin it, or unload it by force."));
  }
  const bool serves = info(instance->machine().state()).leases;
  const std::uint32_t running = serves ? instance->machine().leases() : 0;
  if (!force && (running > 0 || waiting > 0)) {
    return refuse(conflict_error(*instance, requests(running, "run") + " on " + model + " and " +
                                                std::to_string(waiting) +
                                                (waiting == 1 ? " waits" : " wait") +
                                                " for it; unload it by force to end them."));
  }
  if (instance->awaiting_end() >= kUnloadCalls) {
    return refuse({Reason::kQueueFull, "Too many calls wait for the end of " + model + "."});
  }
  if (waiting > 0) {
    refuse_waiters(found->second, {Reason::kConflict, model + " was unloaded by force."});
  }
  const std::shared_ptr<Instance> keep = instance->shared_from_this();
  keep->stop(force ? core::StopCause::kForcedUnload : core::StopCause::kUnload);
  keep->await_end(std::move(done));
}

void Manager::explain_break(const std::string& instance_id, std::function<void(Error)> done) {
  const auto found = instances_.find(Uuid::parse(instance_id));
  if (found != instances_.end()) return found->second->explain_break(std::move(done));
  Error error = recent_ends_.find(instance_id)
                    .value_or(Error(Reason::kWorkerDied, "The worker of the request ended."));
  environment_.clock.post([done = std::move(done), error = std::move(error)] { done(error); });
}

std::vector<InstanceSnapshot> Manager::instances() const {
  std::vector<InstanceSnapshot> all;
  for (const auto& [id, instance] : instances_) {
    if (is_terminal(instance->machine().state())) continue;
    all.push_back(instance->snapshot());
    all.back().charge = room_.charge_of(id);
    all.back().plan = instance->plan();
    all.back().measured = room_.measured(instance->machine().id());
    all.back().pinned = pinned(instance->model().name);
    const auto berth = berths_.find(instance->model().name);
    if (berth != berths_.end() && berth->second.current == instance.get()) {
      all.back().waiting = static_cast<std::uint32_t>(berth->second.queue.size());
    }
  }
  std::ranges::sort(all, [](const InstanceSnapshot& a, const InstanceSnapshot& b) {
    return std::tie(a.started, a.id) < std::tie(b.started, b.id);
  });
  return all;
}

std::vector<QueuedWaiter> Manager::waiters() const {
  const SteadyTime now = environment_.clock.now();
  const WallTime wall = environment_.clock.wall_now();
  const auto at = [&](SteadyTime when) {
    return wall + std::chrono::duration_cast<std::chrono::milliseconds>(when - now);
  };
  std::vector<QueuedWaiter> all;
  for (const auto& [model, berth] : berths_) {
    std::uint32_t position = 0;
    for (const core::Ticket ticket : berth.queue.tickets()) {
      ++position;
      const auto found = waiters_.find(ticket);
      if (found == waiters_.end()) continue;
      const Waiter& waiter = found->second;
      QueuedWaiter& to = all.emplace_back();
      to.model = model;
      to.position = position;
      to.since = at(waiter.since);
      to.until = at(waiter.deadline);
      to.eta = progress_of(berth, position).eta;
      if (const RequestEntry* const request = waiter.observer->claimant()) {
        to.request_id = request->arrival().id;
        to.tenant = request->arrival().tenant;
      }
    }
  }
  return all;
}

std::string Manager::state_of(const std::string& model) const {
  const auto berth = berths_.find(model);
  if (berth == berths_.end()) return "absent";
  core::InstanceState state = core::InstanceState::kAbsent;
  if (berth->second.current != nullptr) {
    state = berth->second.current->machine().state();
  } else if (const Instance* going = leaving(model)) {
    state = going->machine().state();
  }
  return std::string(info(state).name);
}

ModelNow Manager::now_of(const catalog::Model& model) const {
  ModelNow now{
      .state = state_of(model.name), .problem = model.problem, .window = model.served_context};
  const auto berth = berths_.find(model.name);
  const Instance* const current = berth == berths_.end() ? nullptr : berth->second.current;
  if (current != nullptr) {
    const std::uint32_t ready = current->ready().window;
    const std::uint32_t window = ready != 0 ? ready : current->plan().window;
    if (window != 0) now.window = window;
    return now;
  }
  const auto& device_problem = environment_.memory_access.device_problem;
  if (now.problem.empty() && device_problem) now.problem = device_problem(model);
  return now;
}

void Manager::shutdown(Duration drain, std::function<void()> done) {
  const SteadyTime until = environment_.clock.now() + drain;
  drain_until_ = drain_until_ ? std::min(*drain_until_, until) : until;
  shutdown_done_.push_back(std::move(done));
  for (auto& [name, berth] : berths_) {
    berth.back_off_timer.reset();
    refuse_waiters(berth, shutting_down_error());
  }
  std::vector<std::shared_ptr<Instance>> all;
  for (const auto& [id, instance] : instances_) all.push_back(instance);
  for (const auto& instance : all) instance->close(core::StopCause::kShutdown, *drain_until_);
  finish_shutdown();
}

void Manager::finish_shutdown() {
  if (!drain_until_ || shutdown_done_.empty() || !post_mortem_.idle()) return;
  for (const auto& [id, instance] : instances_) {
    const core::InstanceMachine& machine = instance->machine();
    if (!machine.finished() && machine.state() != core::InstanceState::kStuck) return;
  }
  for (auto& done : std::exchange(shutdown_done_, {})) environment_.clock.post(std::move(done));
}

}  // namespace berth::residency
