#include "supervisor/residency/manager.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/mutation.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/evidence.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/lease.h"
#include "supervisor/residency/manager_words.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/waiter.h"

// Claims, from acquire() to their answer.
namespace berth::residency {
namespace {

using core::mutated;
using core::Mutation;

}  // namespace

Manager::Manager(Environment environment, const Limits& limits)
    : environment_(std::move(environment)),
      limits_(limits),
      total_{.limit = limits.waiters_total, .count = 0},
      failures_(environment_,
                [this](const catalog::Model* model, const Uuid& without) {
                  return room_.charged(model, without);
                }),
      post_mortem_(environment_),
      room_(environment_, *this, limits_) {}

Manager::~Manager() = default;

void Manager::use_waits(const Limits& limits) {
  limits_.plan = limits.plan;
  limits_.swap_drain = limits.swap_drain;
  limits_.queue_timeout = limits.queue_timeout;
  for (const auto& instance : closing()) close(instance->machine().id());
  room_.changed();
}

std::vector<std::shared_ptr<Instance>> Manager::closing() const {
  std::vector<std::shared_ptr<Instance>> all;
  for (const auto& [id, instance] : instances_) {
    const core::InstanceMachine& machine = instance->machine();
    if (machine.state() == core::InstanceState::kClosing &&
        machine.cause() == core::StopCause::kEvicted) {
      all.push_back(instance);
    }
  }
  return all;
}

core::Ticket Manager::acquire(const std::shared_ptr<const catalog::Model>& model,
                              RequestClass request_class, SteadyTime deadline,
                              ClaimObserver& observer) {
  const core::Ticket ticket = next_ticket_++;
  const SteadyTime now = environment_.clock.now();
  Waiter& waiter = waiters_[ticket];
  waiter.ticket = ticket;
  waiter.model = model->name;
  waiter.request_class = request_class;
  waiter.since = now;
  waiter.deadline = request_class == RequestClass::kOperator
                        ? deadline
                        : std::min(deadline, now + limits_.queue_timeout);
  waiter.observer = &observer;

  if (std::optional<Error> error = refusal(waiter, *model)) {
    answer(ticket, std::move(*error));
    return ticket;
  }
  Berth& berth = berth_of(model);
  if (berth.current != nullptr && berth.queue.empty() && berth.current->free_places() > 0) {
    answer(ticket, grant(*berth.current, waiter));
    return ticket;
  }
  if (std::optional<Error> error = enqueue(berth, waiter)) {
    answer(ticket, std::move(*error));
    return ticket;
  }
  if (!mutated(Mutation::kLostDeadline)) {
    waiter.timer =
        environment_.clock.sleep_until(waiter.deadline, [this, ticket] { on_deadline(ticket); });
  }
  start_if_wanted(berth);
  report_soon(berth);
  return ticket;
}

std::optional<Error> Manager::refusal(const Waiter& waiter, const catalog::Model& model) {
  if (drain_until_) return shutting_down_error();
  if (!model.problem.empty()) return problem_error(model);
  if (waiter.deadline <= waiter.since) {
    return Error(Reason::kDeadline, "The request's deadline had passed before it could be served.");
  }
  if (waiter.request_class == RequestClass::kOperator) {
    retry(model.name, {});
    return std::nullopt;
  }
  if (const core::FailureRecord* failure = failures_.standing(model.name)) {
    if (environment_.standing_met) environment_.standing_met();
    return standing_failure_error(*failure);
  }
  return std::nullopt;
}

std::optional<Error> Manager::enqueue(Berth& berth, const Waiter& waiter) {
  using Push = core::WaiterQueue::Push;
  const bool client = waiter.request_class != RequestClass::kIdle;
  const bool first = berth.queue.clients() == 0;
  const RequestEntry* const request = waiter.observer->claimant();
  const bool alike = request == nullptr || mutated(Mutation::kNoTurns);
  const Push pushed =
      berth.queue.push(waiter.ticket, alike ? std::string_view() : request->arrival().tenant,
                       client || mutated(Mutation::kIdleWorkFirst) ? core::WaiterKind::kClient
                                                                   : core::WaiterKind::kIdleWork);
  if (pushed == Push::kQueued) {
    berth.newcomers.push_back(waiter.ticket);
    if (client) berth.had_client = true;
    if (client && first && waiter.since > berth.client_left + limits_.plan.retry_grace) {
      berth.carried.reset();
    }
    return std::nullopt;
  }
  const std::uint32_t limit =
      pushed == Push::kModelFull ? limits_.waiters_per_model : limits_.waiters_total;
  ErrorExtras extras;
  extras.limit = limit;
  extras.retry_after_seconds = 1;
  const auto last = static_cast<std::uint32_t>(std::max<std::size_t>(berth.queue.size(), 1));
  if (const auto eta = progress_of(berth, last).eta) {
    extras.retry_after_seconds = std::max(1.0, std::chrono::duration<double>(*eta).count());
  }
  return Error(Reason::kQueueFull,
               pushed == Push::kModelFull ? requests(limit, "wait") + " for " + berth.model->name +
                                                " already; ask again later."
                                          : requests(limit, "wait") + " already; ask again later.",
               std::move(extras));
}

void Manager::hang_up(core::Ticket ticket) {
  const auto waiter = waiters_.find(ticket);
  if (waiter == waiters_.end()) return;
  const auto berth = berths_.find(waiter->second.model);
  const RequestClass request_class = waiter->second.request_class;
  const SteadyTime since = waiter->second.since;
  // An answer that was not delivered yet goes with it; a lease in it comes back by itself.
  waiters_.erase(waiter);
  if (berth == berths_.end() || !berth->second.queue.remove(ticket)) return;
  left_unserved(berth->second, request_class, since);
  report_soon(berth->second);
  if (mutated(Mutation::kHangUpEndsLoad) && berth->second.queue.empty() &&
      berth->second.current != nullptr) {
    berth->second.current->stop(core::StopCause::kUnload);
  }
}

void Manager::left_unserved(Berth& berth, RequestClass request_class, SteadyTime since) {
  if (request_class != RequestClass::kIdle) {
    berth.carried = std::min(berth.carried.value_or(since), since);
    berth.client_left = environment_.clock.now();
  }
  end_job_load(berth);
  room_.changed();
}

void Manager::on_deadline(core::Ticket ticket) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end() || found->second.answer) return;
  const Waiter& waiter = found->second;
  Berth& berth = berths_.at(waiter.model);
  const ClaimProgress progress = progress_of(berth, berth.queue.position(ticket));
  std::string message = waiter.model + " could not serve the request within " +
                        human(environment_.clock.now() - waiter.since) + ": " +
                        wait_sentence(progress) + '.';
  ErrorExtras extras;
  if (progress.eta) {
    extras.retry_after_seconds =
        std::max(1.0, std::chrono::duration<double>(*progress.eta).count());
  }
  berth.queue.remove(ticket);
  left_unserved(berth, waiter.request_class, waiter.since);
  answer(ticket, Error(Reason::kDeadline, std::move(message), std::move(extras)));
  report_soon(berth);
}

void Manager::answer(core::Ticket ticket, Answer answer) {
  const auto waiter = waiters_.find(ticket);
  if (waiter == waiters_.end()) return;
  waiter->second.timer.reset();
  waiter->second.answer = std::move(answer);
  environment_.clock.post([weak = weak_from_this(), ticket] {
    if (const auto self = weak.lock()) self->deliver(ticket);
  });
}

void Manager::deliver(core::Ticket ticket) {
  auto node = waiters_.extract(ticket);
  if (node.empty() || detached_) return;
  ClaimObserver& observer = *node.mapped().observer;
  Answer answer = std::move(*node.mapped().answer);
  node = {};
  if (auto* lease = std::get_if<Lease>(&answer)) {
    observer.on_lease(std::move(*lease));
  } else {
    observer.on_claim_failed(std::move(std::get<Error>(answer)));
  }
}

void Manager::refuse_waiters(Berth& berth, const Error& error) {
  while (const std::optional<core::Ticket> ticket = berth.queue.pop()) answer(*ticket, error);
  berth.carried.reset();
  room_.changed();
}

void Manager::refuse_clients(Berth& berth, const Error& error) {
  bool operators = false;
  std::vector<core::Ticket> clients;
  for (const core::Ticket ticket : berth.queue.tickets()) {
    if (is_operators(ticket)) {
      operators = true;
    } else {
      clients.push_back(ticket);
    }
  }
  for (const core::Ticket ticket : clients) {
    if (berth.queue.remove(ticket)) answer(ticket, error);
  }
  if (operators) retry(berth.model->name, {});
  room_.changed();
}

}  // namespace berth::residency
