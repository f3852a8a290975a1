#include "supervisor/residency/manager.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "common/units.h"
#include "common/uuid.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/mutation.h"
#include "supervisor/core/redact.h"
#include "supervisor/core/thread_shares.h"
#include "supervisor/core/waiters.h"
#include "supervisor/residency/evidence.h"
#include "supervisor/residency/instance.h"
#include "supervisor/residency/lease.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/waiter.h"

namespace berth::residency {
namespace {

using core::mutated;
using core::Mutation;

constexpr std::size_t kUnloadCalls = 256;
constexpr std::size_t kReasonBytes = 512;
constexpr Duration kPositionsPause = std::chrono::milliseconds(100);
// Beside the worker's own phases.
constexpr std::string_view kPhaseStopping = "stopping";
constexpr std::string_view kPhaseBackOff = "back_off";
constexpr std::string_view kPhaseFailed = "failed";

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
  policy.ttl = settings.pin ? Duration::zero() : settings.ttl;
  policy.term_wait = limits.term_wait;
  policy.kill_wait = limits.kill_wait;
  return policy;
}

std::string human(Duration duration) {
  return format_duration_human(std::chrono::duration_cast<std::chrono::milliseconds>(duration));
}

Error problem_error(const catalog::Model& model) {
  FailureEvidence evidence;
  evidence.failure_class = core::failure_class_name(core::FailureClass::kPermanent);
  evidence.reason = core::carried_text(model.problem, kReasonBytes);
  std::string message = model.name + " cannot be loaded: " + evidence.reason;
  ErrorExtras extras;
  extras.failure = std::move(evidence);
  return {Reason::kLoadFailed, std::move(message), std::move(extras)};
}

// What a waiter was waiting for when its time was over.
std::string wait_sentence(const ClaimProgress& progress) {
  if (progress.queue_position) {
    return "it was number " + std::to_string(*progress.queue_position) + " of the queue";
  }
  if (progress.phase == kPhaseStopping) return "the model's last process is still going";
  if (progress.phase == kPhaseBackOff) return "its worker died and will be started again";
  if (progress.phase == kPhaseFailed) return "its load has failed; ask again to learn why";
  return "it is loading (" + progress.phase + ", " +
         std::to_string(static_cast<int>(progress.fraction * 100)) +
         " %), and the load goes on; ask again";
}

Error shutting_down_error() {
  return {Reason::kShuttingDown, "The server is stopping; ask again when it is back."};
}

Error conflict_error(const Instance& instance, std::string message) {
  ErrorExtras extras;
  const auto& state = instance.machine().stamped_state();
  extras.holder = HolderInfo{instance.model().name,
                             std::string(info(state.value).name),
                             {},
                             state.since.wall.time_since_epoch().count()};
  return {Reason::kConflict, std::move(message), std::move(extras)};
}

}  // namespace

Manager::Manager(Environment environment, const Limits& limits)
    : environment_(std::move(environment)),
      limits_(limits),
      total_{.limit = limits.waiters_total, .count = 0},
      failures_(environment_),
      post_mortem_(environment_) {}

Manager::~Manager() = default;

// --- claims

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
  if (std::optional<Error> error = enqueue(berth, ticket)) {
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

std::optional<Error> Manager::enqueue(Berth& berth, core::Ticket ticket) {
  using Push = core::WaiterQueue::Push;
  const Push pushed = berth.queue.push(ticket);
  if (pushed == Push::kQueued) return std::nullopt;
  const std::uint32_t limit =
      pushed == Push::kModelFull ? limits_.waiters_per_model : limits_.waiters_total;
  ErrorExtras extras;
  extras.limit = limit;
  extras.retry_after_seconds = 1;
  if (berth.current != nullptr) {
    if (const auto eta = berth.current->progress().eta) {
      extras.retry_after_seconds = std::max(1.0, std::chrono::duration<double>(*eta).count());
    }
  }
  return Error(Reason::kQueueFull,
               pushed == Push::kModelFull
                   ? std::to_string(limit) + " requests wait for " + berth.model->name +
                         " already; ask again later."
                   : std::to_string(limit) + " requests wait already; ask again later.",
               std::move(extras));
}

void Manager::hang_up(core::Ticket ticket) {
  const auto waiter = waiters_.find(ticket);
  if (waiter == waiters_.end()) return;
  const auto berth = berths_.find(waiter->second.model);
  // An answer that was not delivered yet goes with it; a lease in it comes back by itself.
  waiters_.erase(waiter);
  if (berth == berths_.end() || !berth->second.queue.remove(ticket)) return;
  report_soon(berth->second);
  if (mutated(Mutation::kHangUpEndsLoad) && berth->second.queue.empty() &&
      berth->second.current != nullptr) {
    berth->second.current->stop(core::StopCause::kUnload);
  }
}

void Manager::on_deadline(core::Ticket ticket) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end() || found->second.answer) return;
  const Waiter& waiter = found->second;
  Berth& berth = berths_.at(waiter.model);
  const ClaimProgress progress = progress_of(berth, ticket);
  std::string message = waiter.model + " could not serve the request within " +
                        human(environment_.clock.now() - waiter.since) + ": " +
                        wait_sentence(progress) + '.';
  ErrorExtras extras;
  if (progress.eta) {
    extras.retry_after_seconds =
        std::max(1.0, std::chrono::duration<double>(*progress.eta).count());
  }
  berth.queue.remove(ticket);
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
}

// --- loads and leases

Berth& Manager::berth_of(const std::shared_ptr<const catalog::Model>& model) {
  Berth& berth =
      berths_.try_emplace(model->name, model, limits_.waiters_per_model, total_).first->second;
  berth.model = model;
  return berth;
}

void Manager::start_if_wanted(Berth& berth) {
  if (drain_until_ || berth.queue.empty()) return;
  if (!mutated(Mutation::kDoubleLoad)) {
    if (berth.current != nullptr) return;
    // Its memory is charged until it is gone (L2). A stuck one is not waited for.
    if (leaving(berth.model->name) != nullptr) return;
    if (verdict_pending(berth.model->name) && !operator_waits(berth)) return;
  }
  const SteadyTime now = environment_.clock.now();
  if (berth.back_off.not_before() > now && !mutated(Mutation::kNoBackOff)) {
    if (berth.back_off_timer.armed()) return;
    berth.back_off_timer =
        environment_.clock.sleep_until(berth.back_off.not_before(), [this, &berth] {
          berth.back_off_timer.reset();
          start_if_wanted(berth);
        });
    return;
  }
  const auto first = waiters_.find(berth.queue.tickets().front());
  start(berth, first == waiters_.end() ? RequestClass::kForeground : first->second.request_class);
}

void Manager::start(Berth& berth, RequestClass request_class) {
  const Uuid id = environment_.ids.next();
  const auto find = [weak = weak_from_this(),
                     model = berth.model->name](const Uuid& wanted) -> std::shared_ptr<Instance> {
    const auto self = weak.lock();
    return self ? self->find(model, wanted) : nullptr;
  };
  const auto instance =
      std::make_shared<Instance>(environment_, *this, find, berth.model,
                                 policy_of(berth.model->settings, limits_), id, request_class);
  instances_.emplace(id, instance);
  berth.current = instance.get();
  failures_.load_started(*berth.model, id);
  instance->begin();
}

void Manager::serve(Berth& berth) {
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
  if (moved) report_soon(berth);
}

Lease Manager::grant(Instance& instance, const Waiter& waiter) {
  instance.grant_lease();
  share_cores();
  Lease::Impl::Place place;
  place.model = instance.model().name;
  place.instance = instance.machine().id();
  place.client = waiter.request_class != RequestClass::kIdle;
  place.window = instance.ready().window;
  place.longest_token_bytes = instance.ready().longest_token_bytes;
  return Lease(std::make_unique<Lease::Impl>(environment_.clock, weak_from_this(),
                                             instance.worker(), std::move(place)));
}

void Manager::lease_returned(const std::string& model, const Uuid& instance, bool client) {
  if (mutated(Mutation::kLeaseNotReturned)) return;
  const std::shared_ptr<Instance> there = find(model, instance);
  if (!there) return;
  there->lease_returned(client);
  share_cores();
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
  const auto berth = berths_.find(instance.model().name);
  if (berth != berths_.end() && berth->second.current == &instance) serve(berth->second);
}

void Manager::on_instance_unavailable(Instance& instance) {
  Berth& berth = berths_.at(instance.model().name);
  if (berth.current != &instance) return;
  berth.current = nullptr;
  const core::InstanceResult result = instance.machine().result().value;
  if (result == core::InstanceResult::kFailedOwn || result == core::InstanceResult::kFailedLaunch) {
    // They waited for this load; who comes from now on waits for the next one.
    instance.doomed() = berth.queue.detach_all();
  }
}

void Manager::on_load_failed(Instance& instance, const Error& error) {
  Berth& berth = berths_.at(instance.model().name);
  for (const core::Ticket ticket : std::exchange(instance.doomed(), {})) {
    if (berth.queue.remove(ticket)) answer(ticket, error);
  }
  if (failures_.load_failed(instance.failure_record(*instance.machine().failure()))) {
    refuse_clients(berth, error);
  }
}

void Manager::on_load_interrupted(Instance& instance) {
  failures_.load_interrupted(instance.model().name, instance.machine().id());
}

void Manager::on_ready_end(Berth& berth, Instance& instance) {
  const core::InstanceMachine& machine = instance.machine();
  core::ReadyEnd end = core::ReadyEnd::kStopped;
  if (machine.result().value == core::InstanceResult::kDied) {
    end = machine.died_by_itself() ? core::ReadyEnd::kDied : core::ReadyEnd::kGivenUp;
  }
  berth.back_off.on_end(end, machine.result().since.steady - machine.ready_since()->steady,
                        environment_.clock.now());
  if (end == core::ReadyEnd::kDied) look_into_death(berth, instance);
  if (const std::optional<Error> known = instance.known_break()) {
    recent_ends_.add(instance.id_text(), *known);
  }
}

void Manager::look_into_death(const Berth& berth, const Instance& instance) {
  core::DeathEvidence evidence;
  evidence.exit = instance.machine().own_exit();
  if (berth.back_off.crash_loop()) {
    evidence.said = core::FailureClass::kCrashLoop;
    evidence.reason = "its worker died three times within two minutes";
  }
  const auto* signalled = evidence.exit ? std::get_if<core::Signalled>(&*evidence.exit) : nullptr;
  const bool killed = signalled != nullptr && signalled->signal == SIGKILL;
  const bool counted =
      evidence.exit && environment_.oom_counted && environment_.oom_counted(instance.pid());
  if (!evidence.said && !killed && !counted) return;
  post_mortem_.look_at(
      {instance.model().name, instance.machine().id(), instance.pid(), killed && !counted, counted},
      [this, record = instance.failure_record({}),
       evidence = std::move(evidence)](PostMortem::Found found) mutable {
        on_death_known(std::move(record), std::move(evidence), std::move(found));
      });
}

void Manager::on_death_known(core::FailureRecord record, core::DeathEvidence evidence,
                             PostMortem::Found found) {
  if (found.oom_proven) {
    evidence.oom_proven = true;
    evidence.reason = core::kOomReason;
  }
  if (evidence.said || evidence.oom_proven) {
    core::LoadFailure failure = core::judge(evidence);
    record.failure_class = failure.failure_class;
    record.reason = std::move(failure.reason);
    record.exit = failure.status;
    record.log_tail = std::move(found.log_tail);
    const std::string model = record.model;
    if (failures_.load_failed(std::move(record))) {
      const core::FailureRecord* const stands = failures_.standing(model);
      if (stands != nullptr) refuse_clients(berths_.at(model), standing_failure_error(*stands));
    }
  }
  finish_shutdown();
}

void Manager::on_instance_progress(Instance& instance) {
  report_soon(berths_.at(instance.model().name));
}

void Manager::on_instance_settled(Instance& instance) {
  const core::InstanceMachine& machine = instance.machine();
  Berth& berth = berths_.at(instance.model().name);
  if (machine.finished()) {
    const auto node = instances_.extract(machine.id());
    if (node.empty()) return;
    if (machine.ready_since()) on_ready_end(berth, instance);
    // The process and its connection may still be calling: they go when nothing of them runs.
    environment_.clock.post([gone = node.mapped()] {});
    share_cores();
  }
  serve(berth);
  start_if_wanted(berth);
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

// --- progress

void Manager::report_soon(Berth& berth) {
  if (berth.report_posted || berth.queue.empty()) return;
  berth.report_posted = true;
  environment_.clock.post([weak = weak_from_this(), model = berth.model->name] {
    if (const auto self = weak.lock()) self->report(model);
  });
}

// While answers come and go every place in the queue moves with each of them: many who wait would
// cost more than those who are served. So all are told at once, now and then; who is new, at once.
bool Manager::tells_only_new(Berth& berth) {
  const bool serves = berth.current != nullptr && info(berth.current->machine().state()).leases;
  const SteadyTime next = berth.positions_told + kPositionsPause;
  const SteadyTime now = environment_.clock.now();
  if (!serves || now >= next) {
    berth.positions_told = now;
    berth.positions_timer.reset();
    return false;
  }
  if (!berth.positions_timer.armed()) {
    berth.positions_timer =
        environment_.clock.sleep_until(next, [weak = weak_from_this(), model = berth.model->name] {
          const auto self = weak.lock();
          if (!self) return;
          if (const auto found = self->berths_.find(model); found != self->berths_.end()) {
            self->report_soon(found->second);
          }
        });
  }
  return true;
}

void Manager::report(const std::string& model) {
  Berth& berth = berths_.at(model);
  berth.report_posted = false;
  const bool only_new = tells_only_new(berth);
  // Whoever is told may come, go and end things: nothing is kept from one to the next.
  for (const core::Ticket ticket : berth.queue.tickets()) {
    if (detached_) return;
    const auto waiter = waiters_.find(ticket);
    if (waiter == waiters_.end() || waiter->second.answer) continue;
    std::optional<ClaimProgress>& told = waiter->second.told;
    if (only_new && told && told->queue_position) continue;
    ClaimProgress progress = progress_of(berth, ticket);
    const auto key = [](const ClaimProgress& one) {
      return std::tie(one.queue_position, one.phase, one.fraction);
    };
    if (told && key(*told) == key(progress)) continue;
    told = progress;
    waiter->second.observer->on_claim_progress(progress);
  }
}

ClaimProgress Manager::progress_of(const Berth& berth, core::Ticket ticket) const {
  ClaimProgress progress;
  const std::optional<std::uint32_t> position = berth.queue.position(ticket);
  if (!position) {
    progress.phase = kPhaseFailed;
    return progress;
  }
  if (berth.current != nullptr) {
    const core::InstanceState state = berth.current->machine().state();
    if (!info(state).leases) return berth.current->progress();
    progress.queue_position = position;
    return progress;
  }
  if (leaving(berth.model->name) != nullptr) {
    progress.phase = kPhaseStopping;
    return progress;
  }
  if (verdict_pending(berth.model->name)) {
    progress.phase = kPhaseFailed;
    return progress;
  }
  progress.phase = kPhaseBackOff;
  const Duration left = berth.back_off.not_before() - environment_.clock.now();
  progress.eta = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max<Duration>(left, Duration::zero()));
  return progress;
}

// --- failures of loads

void Manager::restore_failures(std::function<void()> done) {
  failures_.restore(std::move(done));
}

void Manager::catalog_changed() {
  for (const std::string& model : failures_.catalog_changed()) forget_deaths(model);
}

std::optional<core::FailureRecord> Manager::retry(const std::string& model,
                                                  const std::string& who) {
  std::optional<core::FailureRecord> lifted = failures_.retry(model, who);
  if (lifted) forget_deaths(model);
  return lifted;
}

void Manager::forget_deaths(const std::string& model) {
  const auto berth = berths_.find(model);
  if (berth == berths_.end()) return;
  berth->second.back_off = {};
  berth->second.back_off_timer.reset();
}

// --- what operators and clients ask

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
  const bool serves = info(instance->machine().state()).leases;
  const std::uint32_t running = serves ? instance->machine().leases() : 0;
  if (!force && (running > 0 || waiting > 0)) {
    return refuse(conflict_error(*instance, std::to_string(running) + " requests run on " + model +
                                                " and " + std::to_string(waiting) +
                                                " wait for it; unload it by force to end them."));
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
