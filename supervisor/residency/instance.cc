#include "supervisor/residency/instance.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/durations.h"
#include "common/event.h"
#include "common/fd.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/redact.h"
#include "supervisor/residency/evidence.h"
#include "supervisor/store/store.h"

namespace berth::residency {
namespace {

constexpr Duration kBreakWait = std::chrono::seconds(1);
constexpr std::size_t kReasonBytes = 512;
constexpr std::size_t kPhaseBytes = 32;
// Of the last loads, how many are looked at for one that succeeded.
constexpr std::size_t kLoadsLookedAt = 8;
// A waiter is told of every further percent.
constexpr float kProgressStep = 0.01F;

std::int64_t signed_bytes(std::uint64_t bytes) {
  return static_cast<std::int64_t>(bytes);
}

}  // namespace

Instance::Instance(Environment& environment, InstanceHost& host, FindInstance find,
                   std::shared_ptr<const catalog::Model> model, const core::InstancePolicy& policy,
                   const Uuid& id, RequestClass request_class, LaunchPlan plan)
    : environment_(environment),
      host_(host),
      find_(std::move(find)),
      model_(std::move(model)),
      id_text_(id.to_string()),
      request_class_(request_class),
      plan_(std::move(plan)),
      use_{.last_used = environment.clock.now(),
           .last_by_idle_work = request_class == RequestClass::kIdle},
      policy_(policy),
      machine_(id, policy, core::moment_of(environment.clock)),
      progress_(environment.clock.now()) {
  record_.id = id_text_;
  record_.model = model_->name;
  record_.started = machine_.created().wall;
}

Instance::~Instance() = default;

void Instance::begin() {
  put_record();
  fetch_last_load_time();
  arm_timer();
  environment_.prepare_launch(model_, machine_.id(), plan_,
                              [find = find_, id = machine_.id()](Result<PreparedLaunch> prepared) {
                                if (const auto self = find(id)) {
                                  self->on_prepared(std::move(prepared));
                                }
                              });
}

void Instance::on_prepared(Result<PreparedLaunch> prepared) {
  if (machine_.state() != core::InstanceState::kStarting || machine_.has_process()) return;
  LoadBasis basis = host_.on_instance_prepared(*this);
  if (!prepared) {
    feed(core::NotLaunched{launch_failure(prepared.error())});
    return;
  }
  if (!basis.proven) {
    for (const std::string& argument : prepared->first_load_arguments) {
      prepared->spec.argv.push_back(argument);
      prepared->shown_argv.push_back(argument);
    }
  }
  record_.provenance = std::move(basis.provenance);
  socket_ = prepared->socket;
  command_ = prepared->shown_argv;
  variables_ = prepared->shown_environment;
  UniqueFd log;
  if (environment_.watch_tree && prepared->spec.output) {
    log.reset(::fcntl(prepared->spec.output.get(), F_DUPFD_CLOEXEC, 0));
  }
  std::optional<process::LogPlace> log_place = std::move(prepared->log);
  Result<std::unique_ptr<process::ChildProcess>> child =
      environment_.launcher.launch(std::move(prepared->spec), *this);
  if (!child) {
    feed(core::NotLaunched{launch_failure(child.error())});
    return;
  }
  process_ = std::move(*child);
  pid_ = process_->pid();
  if (environment_.load_meter != nullptr) {
    environment_.load_meter->launched({model_, machine_.id(), pid_, plan_, std::move(basis.of)});
  }
  environment_.store.put_process(
      {id_text_, model_->name, pid_, process_->start_ticks(), environment_.boot_id});
  announce_start();
  feed(core::Launched{});
  if (machine_.has_process()) guard_load(std::move(log));
  watch_log(std::move(log_place));
}

void Instance::guard_load(UniqueFd log) {
  if (!environment_.watch_tree || machine_.state() != core::InstanceState::kStarting) return;
  core::StallPolicy policy;
  policy.window = policy_.load_stall;
  load_guard_ = std::make_unique<LoadGuard>(
      environment_.clock, policy,
      environment_.watch_tree(pid_, process_->start_ticks(), std::move(log)),
      [this](std::string reason) { feed(core::Stalled{std::move(reason)}); });
}

void Instance::fetch_last_load_time() {
  environment_.store.loads(
      model_->name, kLoadsLookedAt,
      [find = find_, id = machine_.id()](const Result<std::vector<store::LoadRecord>>& loads) {
        const auto self = find(id);
        if (!self || !loads) return;
        const auto last = std::ranges::find_if(*loads, [](const store::LoadRecord& load) {
          return load.ready.has_value() && load.load_ms > 0;
        });
        if (last != loads->end()) {
          self->progress_.expect(std::chrono::milliseconds(last->load_ms));
        }
      });
}

// --- what happens

void Instance::stop(core::StopCause cause) {
  feed(core::StopOrdered{cause});
}

void Instance::close(core::StopCause cause, SteadyTime until) {
  feed(core::CloseOrdered{cause, until});
}

void Instance::reopen() {
  feed(core::ReopenOrdered{});
}

void Instance::pin(bool pinned) {
  machine_.pin(pinned);
  arm_timer();
}

void Instance::grant_lease(bool client) {
  ++(client ? use_.clients : use_.soft);
  use_.last_by_idle_work = !client;
  if (client) use_.last_used = environment_.clock.now();
  feed(core::LeaseGranted{});
}

void Instance::lease_returned(bool client) {
  ++served_;
  std::uint32_t& held = client ? use_.clients : use_.soft;
  held -= std::min<std::uint32_t>(held, 1);
  if (client) use_.last_used = use_.idle_since = environment_.clock.now();
  feed(core::LeaseReturned{client});
}

void Instance::use_threads(std::uint32_t threads) {
  if (threads == told_threads_ || !worker_) return;
  told_threads_ = threads;
  worker_->set_threads(threads);
}

void Instance::on_notify(std::string_view line) {
  if (line != "listening") return;
  listened_ = true;
  feed(core::Listening{});
}

void Instance::on_exit(core::ExitStatus status) {
  // A program that is not ours has no stream whose last words could still arrive.
  if (model_->settings.kind == catalog::Kind::kCommand) feed(core::Disconnected{});
  feed(core::ProcessExited{status});
}

void Instance::on_progress(const rpc::WorkerProgress& progress) {
  if (machine_.state() != core::InstanceState::kLoading) return;
  const std::string phase = core::carried_text(progress.phase, kPhaseBytes);
  const bool moved = progress.phase != heard_.phase || progress.fraction != heard_.fraction ||
                     progress.bytes_done != heard_.bytes_done;
  heard_ = progress;
  if (moved && load_guard_) load_guard_->note_progress();
  const bool milestone = progress_.update(phase, progress.fraction);
  if (milestone) {
    environment_.events.emit_typed(
        events::LoadProgress{.model = model_->name,
                             .instance = id_text_,
                             .phase = phase,
                             .fraction = static_cast<double>(progress_.fraction())});
  }
  if (milestone || progress_.fraction() - told_fraction_ >= kProgressStep) {
    told_fraction_ = progress_.fraction();
    host_.on_instance_progress(*this);
  }
}

void Instance::on_own_request() {
  if (load_guard_) load_guard_->note_own_request();
}

void Instance::on_probe(std::string_view saw) {
  if (load_guard_) load_guard_->note_probe(saw);
}

void Instance::on_ready(const rpc::WorkerReady& ready) {
  if (machine_.state() != core::InstanceState::kLoading) return;
  ready_ = ready;
  ready_.sequences = std::max<std::uint32_t>(ready_.sequences, 1);
  ready_.threads = std::max<std::uint32_t>(ready_.threads, 1);
  told_threads_ = ready_.threads;
  use_.idle_since = environment_.clock.now();
  feed(core::BecameReady{});
}

void Instance::on_load_failed(const rpc::WorkerLoadFailed& failed) {
  // For a program that is not ours a client of our own speaks, which knows more.
  const bool ours = model_->settings.kind == catalog::Kind::kCommand;
  feed(core::SaidLoadFailed{ours ? core::failure_class_from_name(failed.failure_class)
                                 : core::failure_class_said_by_worker(failed.failure_class),
                            core::carried_text(failed.reason, kReasonBytes)});
}

// A heartbeat changes no state: what is in flight is known by its leases. It shows that it gets on.
void Instance::on_heartbeat(const rpc::WorkerHeartbeat& heartbeat) {
  if (!work_guard_) return;
  work_guard_->on_pulse(
      {heartbeat.progress, heartbeat.active, heartbeat.waiting, heartbeat.paused});
}

void Instance::on_disconnected() {
  feed(core::Disconnected{});
}

// --- what is done about it

// Each part of its life has its own evidence of life.
void Instance::adjust_guards() {
  using State = core::InstanceState;
  const State state = machine_.state();
  if (state != State::kStarting && state != State::kLoading) load_guard_.reset();
  if (state != State::kReady && state != State::kBusy && state != State::kClosing) {
    work_guard_.reset();
    return;
  }
  if (!work_guard_) {
    core::WedgePolicy policy;
    policy.fixed = policy_.wedge_after;
    work_guard_ =
        std::make_unique<WorkGuard>(environment_.clock, policy, [this](std::string reason) {
          standstill_ = std::move(reason);
          feed(core::Wedged{});
        });
  }
  work_guard_->set_requests(machine_.leases());
}

void Instance::feed(const core::InstanceEvent& event) {
  // What comes late finds nobody that keeps it any more: its host may be gone.
  if (machine_.finished()) return;
  const auto keep = shared_from_this();
  const core::InstanceActions actions = machine_.apply(machine_.id(), event, now());
  for (const core::InstanceAction action : actions) perform(action);
  end_log_watch();
  arm_timer();
  adjust_guards();
  host_.on_instance_settled(*this);
}

void Instance::perform(core::InstanceAction action) {
  using Action = core::InstanceAction;
  switch (action) {
    case Action::kConnect:
      worker_ = WorkerHandle::connect(environment_.connector, socket_, id_text_, weak_from_this());
      break;
    case Action::kCancelInFlight:
      if (worker_) worker_->revoke();
      break;
    case Action::kTerminate:
      process_->signal_group(SIGTERM);
      break;
    case Action::kKill:
      process_->signal_group(SIGKILL);
      break;
    case Action::kCollectLog:
      collect_log();
      break;
    case Action::kReportReady:
      report_ready();
      break;
    case Action::kReportUnavailable:
      host_.on_instance_unavailable(*this);
      break;
    case Action::kReportStopping:
      environment_.events.emit_typed(
          events::InstanceStopping{.model = model_->name,
                                   .instance = id_text_,
                                   .cause = std::string(stop_cause_name(machine_.cause()))});
      tell_break_waits();
      break;
    case Action::kReportFailed:
      report_failed();
      break;
    case Action::kReportInterrupted:
      report_interrupted();
      break;
    case Action::kReportDied:
      record_.reason = machine_.exit_status() ? core::to_string(*machine_.exit_status())
                       : !standstill_.empty() ? standstill_
                                              : "the worker ended its connection";
      environment_.events.emit_typed(events::InstanceDied{
          .model = model_->name,
          .instance = id_text_,
          .pid = pid_,
          .exit = machine_.exit_status() ? core::to_string(*machine_.exit_status()) : std::string(),
          .failed_requests = machine_.leases()});
      break;
    case Action::kReportExited:
      report_exited();
      break;
    case Action::kReportStuck:
      environment_.events.emit_typed(
          events::InstanceStuck{.model = model_->name, .instance = id_text_, .pid = pid_});
      tell_end_waits();
      break;
  }
}

void Instance::arm_timer() {
  const std::optional<SteadyTime> at = machine_.wake_at(now());
  if (at == timer_at_ && timer_.armed() == at.has_value()) return;
  timer_.reset();
  timer_at_ = at;
  if (!at) return;
  timer_ = environment_.clock.sleep_until(*at, [this] {
    timer_at_.reset();
    feed(core::TimePassed{});
  });
}

void Instance::announce_start() {
  if (std::exchange(start_announced_, true)) return;
  environment_.events.emit_typed(
      events::LoadStarted{.model = model_->name,
                          .instance = id_text_,
                          .pid = pid_,
                          .cause = std::string(core::caller_name(request_class_))});
}

void Instance::report_ready() {
  for (const rpc::MemoryUse& use : ready_.memory) {
    record_.weights_bytes += use.weights_bytes;
    record_.kv_bytes += use.kv_bytes;
    record_.working_bytes += use.working_bytes;
  }
  const core::Moment& created = machine_.created();
  record_.ready = machine_.ready_since()->wall;
  record_.load_ms = whole_milliseconds(machine_.ready_since()->steady - created.steady);
  put_record();
  environment_.events.emit_typed(
      events::LoadReady{.model = model_->name,
                        .instance = id_text_,
                        .took_ms = record_.load_ms,
                        .window = ready_.window,
                        .weights_bytes = signed_bytes(record_.weights_bytes),
                        .kv_bytes = signed_bytes(record_.kv_bytes),
                        .working_bytes = signed_bytes(record_.working_bytes)});
  host_.on_instance_ready(*this);
}

void Instance::report_failed() {
  announce_start();
  const core::LoadFailure& failure = *machine_.failure();
  record_.failure_class = core::failure_class_name(failure.failure_class);
  record_.reason = core::failure_sentence(failure);
  if (failure.status) record_.exit = core::to_string(*failure.status);
  record_.ended = now().wall;
  put_record();
  environment_.events.emit_typed(events::LoadFailed{
      .model = model_->name,
      .instance = id_text_,
      .record = record_.id,
      .failure_class = record_.failure_class,
      .reason = record_.reason,
      .exit = record_.exit,
      .took_ms = whole_milliseconds(machine_.result().since.steady - machine_.created().steady)});
  host_.on_load_failed(*this, load_failed_error(failure, facts()));
}

void Instance::report_interrupted() {
  announce_start();
  record_.ended = now().wall;
  put_record();
  environment_.events.emit_typed(
      events::LoadInterrupted{.model = model_->name,
                              .instance = id_text_,
                              .cause = std::string(stop_cause_name(machine_.cause()))});
  host_.on_load_interrupted(*this);
  if (!machine_.has_process()) tell_end_waits();
}

void Instance::report_exited() {
  environment_.store.remove_process(id_text_);
  const std::string exit = core::to_string(*machine_.exit_status());
  const core::InstanceResult result = machine_.result().value;
  if (result == core::InstanceResult::kDied || result == core::InstanceResult::kStopped) {
    // A signal that we sent is never the cause of death (L20).
    const std::optional<core::ExitStatus> own = machine_.own_exit();
    const bool died = result == core::InstanceResult::kDied;
    record_.exit = !died ? exit : own ? core::to_string(*own) : std::string();
    record_.ended = now().wall;
    put_record();
  }
  environment_.events.emit_typed(
      events::InstanceExited{.model = model_->name,
                             .instance = id_text_,
                             .pid = pid_,
                             .exit = exit,
                             .cause = machine_.cause() == core::StopCause::kNone
                                          ? "itself"
                                          : std::string(stop_cause_name(machine_.cause()))});
  tell_end_waits();
  tell_break_waits();
}

void Instance::put_record() {
  record_.outcome = outcome_name(machine_.result().value);
  environment_.store.put_load(record_);
}

// --- who asks

void Instance::await_end(std::function<void(Result<UnloadOutcome>)> done) {
  end_waits_.push_back({std::move(done), environment_.clock.now()});
  if (machine_.state() == core::InstanceState::kStuck || is_terminal(machine_.state())) {
    tell_end_waits();
  }
}

void Instance::tell_end_waits() {
  for (EndWait& wait : std::exchange(end_waits_, {})) {
    Result<UnloadOutcome> outcome =
        fail(Reason::kInternal, "The process of " + model_->name + " (" + std::to_string(pid_) +
                                    ") was killed and does not go.");
    if (machine_.state() != core::InstanceState::kStuck) {
      outcome = UnloadOutcome{
          id_text_, machine_.exit_status().value_or(core::UnknownExit{}),
          std::chrono::milliseconds(whole_milliseconds(environment_.clock.now() - wait.since))};
    }
    environment_.clock.post(
        [done = std::move(wait.done), outcome = std::move(outcome)] { done(outcome); });
  }
}

void Instance::explain_break(std::function<void(Error)> done) {
  if (std::optional<Error> known = known_break()) {
    environment_.clock.post([done = std::move(done), error = std::move(*known)] { done(error); });
    return;
  }
  const std::uint64_t key = next_break_++;
  Timer timer = environment_.clock.sleep_for(kBreakWait, [this, key] {
    const auto at = std::ranges::find(break_waits_, key, &BreakWait::key);
    if (at == break_waits_.end()) return;
    const std::function<void(Error)> asked = std::move(at->done);
    break_waits_.erase(at);
    asked(worker_died_error(std::nullopt, facts()));
  });
  break_waits_.push_back({key, std::move(done), std::move(timer)});
}

void Instance::tell_break_waits() {
  const std::optional<Error> known = known_break();
  if (!known) return;
  for (BreakWait& wait : std::exchange(break_waits_, {})) {
    environment_.clock.post([done = std::move(wait.done), error = *known] { done(error); });
  }
}

std::optional<Error> Instance::known_break() const {
  if (machine_.cause() == core::StopCause::kWedged) {
    return stopped_error(machine_.cause(), facts());
  }
  if (machine_.cause() != core::StopCause::kNone &&
      machine_.state() != core::InstanceState::kClosing &&
      machine_.result().value != core::InstanceResult::kDied) {
    return stopped_error(machine_.cause(), facts());
  }
  if (machine_.exit_status()) return worker_died_error(machine_.own_exit(), facts());
  return std::nullopt;
}

Duration Instance::load_time() const {
  const core::Moment end = machine_.ready_since() ? *machine_.ready_since() : now();
  return end.steady - machine_.created().steady;
}

std::uint32_t Instance::free_places() const {
  if (!machine_.takes_leases() || machine_.leases() >= ready_.sequences) return 0;
  return ready_.sequences - machine_.leases();
}

ClaimProgress Instance::progress() const {
  ClaimProgress progress;
  progress.phase = progress_.phase();
  progress.fraction = progress_.fraction();
  progress.eta = progress_.eta(environment_.clock.now());
  return progress;
}

InstanceSnapshot Instance::snapshot() const {
  InstanceSnapshot snapshot;
  const core::InstanceState state = machine_.state();
  snapshot.id = id_text_;
  snapshot.model = model_->name;
  snapshot.state = info(state).name;
  snapshot.state_since = machine_.stamped_state().since.wall;
  snapshot.pid = pid_;
  snapshot.started = machine_.created().wall;
  if (state == core::InstanceState::kStarting || state == core::InstanceState::kLoading) {
    snapshot.loading = progress();
  }
  snapshot.window = ready_.window;
  snapshot.sequences = ready_.sequences;
  snapshot.active = machine_.leases();
  snapshot.weights_bytes = record_.weights_bytes;
  snapshot.kv_bytes = record_.kv_bytes;
  snapshot.working_bytes = record_.working_bytes;
  if (const std::optional<Duration> left = machine_.ttl_left(now())) {
    snapshot.ttl = std::chrono::milliseconds(std::max<std::int64_t>(whole_milliseconds(*left), 0));
  }
  snapshot.requests_served = served_;
  snapshot.socket = socket_;
  snapshot.command = command_;
  return snapshot;
}

core::FailureRecord Instance::failure_record(const core::LoadFailure& failure) const {
  core::FailureRecord record;
  // An instance fails once, so that its id names the failure, too.
  record.id = machine_.id();
  record.model = model_->name;
  record.failure_class = failure.failure_class;
  record.reason = failure.reason;
  record.exit = failure.status;
  // berth-worker takes none of the memory that the domains are about before it listens.
  const bool loading = pid_ != 0 && (listened_ || model_->settings.kind == catalog::Kind::kCommand);
  if (!loading && failure.failure_class == core::FailureClass::kResource) {
    record.failing_domain = core::kLaunchDomain;
  }
  record.instance = machine_.id();
  record.started = machine_.created().wall;
  record.ended = machine_.result().since.wall;
  record.command = command_;
  record.environment = variables_;
  record.log_tail = log_tail_;
  record.memory = predicted_charges();
  return record;
}

// L18: what it was charged when it was admitted.
std::vector<core::FailureMemory> Instance::predicted_charges() const {
  std::vector<core::FailureMemory> charges;
  if (!environment_.memory_access.domains) return charges;
  const core::Domains domains = environment_.memory_access.domains();
  for (std::size_t i = 0; i < std::min(domains.size(), core::kMaxDomains); ++i) {
    const std::uint64_t bytes = plan_.at.bytes[static_cast<core::DomainIndex>(i)];
    if (bytes == 0) continue;
    core::FailureMemory& charge = charges.emplace_back();
    charge.domain = domains[i].id;
    charge.predicted_charge = bytes;
  }
  return charges;
}

core::Moment Instance::now() const {
  return core::moment_of(environment_.clock);
}

InstanceFacts Instance::facts() const {
  return {model_->name, id_text_, machine_.result().since.wall, command_, log_tail_, standstill_};
}

}  // namespace berth::residency
