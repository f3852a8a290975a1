#include "tests/simulation/scenario.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/log/log_verdict.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scenario_times.h"
#include "tests/simulation/worker_script.h"

namespace berth::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

}  // namespace

const std::vector<std::string>& expected_reach() {
  static const std::vector<std::string> all = {
      "answer conflict",
      "answer deadline",
      "answer insufficient_memory",
      "answer lease",
      "answer load_failed",
      "answer no_room",
      "answer queue_full",
      "answer shutting_down",
      "break conflict",
      "break draining",
      "break shutting_down",
      "break worker_died",
      "failure.lifted hand permanent",
      "failure.lifted memory resource",
      "failure.stands crash",
      "failure.stands crash_loop",
      "failure.stands launch",
      "failure.stands oom",
      "failure.stands permanent",
      "failure.stands resource",
      "failure.stands stalled",
      "failure.stands timeout",
      "failure.stands unclassified",
      "instance.died",
      "instance.exited itself",
      "instance.stopping disconnected",
      "instance.stopping evicted",
      "instance.stopping forced_unload",
      "instance.stopping idle",
      "instance.stopping job_ended",
      "instance.stopping load_failed",
      "instance.stopping load_timeout",
      "instance.stopping shutdown",
      "instance.stopping stalled",
      "instance.stopping unload",
      "instance.stopping wedged",
      "instance.stuck",
      "load.failed crash",
      "load.failed launch",
      "load.failed oom",
      "load.failed permanent",
      "load.failed stalled",
      "load.failed timeout",
      "load.failed unclassified",
      "load.interrupted evicted",
      "load.interrupted forced_unload",
      "load.interrupted shutdown",
      "load.interrupted unload",
      "load.ready",
      "load.started idle_work",
      "load.started request",
      "memory.not_returned",
      "memory.returned",
      "model.closing",
      "model.evicted abandoned_load",
      "model.evicted closing",
      "model.evicted idle",
      "model.evicted idle_work",
      "model.reopened",
      "model.refused foreign_use",
      "model.refused never_fits",
      "model.refused pinned",
      "model.refused stuck",
      "phase back_off",
      "phase queued",
      "phase stopping",
      "phase weights",
      "job late",
      "job told",
      "job yielded",
      "load.started operator",
      "settings changed",
      "waits for idle_work",
      "position",
      "state busy",
      "state closing",
      "state draining",
      "state loading",
      "state ready",
      "state starting",
      "state stopping",
      "state stuck",
      "waits for check",
      "waits for clients",
      "waits for closing",
      "waits for foreign_use",
      "waits for grace",
      "waits for idle_room",
      "waits for leaving",
      "waits for older_waiter",
  };
  return all;
}

Scenario::Scenario(std::uint64_t seed, std::size_t steps, bool trace)
    : steps_(steps), trace_(trace), random_(seed * 2 + 1), world_(seed) {
  limits_.waiters_per_model = static_cast<std::uint32_t>(random_.between(3, 12));
  limits_.waiters_total = static_cast<std::uint32_t>(random_.between(6, 24));
  limits_.queue_timeout = random_.percent(50) ? Duration(seconds(40)) : Duration(minutes(10));
  const std::uint64_t count = random_.between(std::uint64_t{1}, std::uint64_t{5});
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto model = make_model(std::string(1, static_cast<char>('a' + i)));
    model->settings.load_timeout = kLoadTimeout;
    model->settings.load_stall = kLoadStall;
    model->settings.wedge_after = kWedgeAfter;
    model->settings.ttl =
        random_.percent(30) ? Duration::zero() : random_.between(seconds(1), minutes(3));
    models_.push_back(model);
  }
  if (random_.percent(60)) {
    for (std::uint64_t i = random_.between(std::uint64_t{2}, std::uint64_t{4}); i > 0; --i) {
      residency::RequestArrival arrival;
      arrival.tenant = "tenant-" + std::to_string(i);
      tenants_.push_back(book_.arrive(std::move(arrival)));
    }
  }
  draw_memory();
  world_.find_model = [this](const std::string& name) {
    const auto at = std::ranges::find(models_, name, [](const auto& one) { return one->name; });
    return at == models_.end() ? nullptr : *at;
  };
  world_.workers.set_script([this](const std::string& model) { return draw_script(model); });
  world_.events.on_event([this](const Event& event) { on_event(event); });
  world_.store.on_failure = [this](const core::FailureRecord& record) {
    violate(records_.on_record(record));
  };
  if (random_.percent(40)) world_.store.slow_failures = random_.between(seconds(1), seconds(20));
  residency_ = std::make_unique<residency::Residency>(world_.environment(), limits_);
  client_ = std::make_unique<SimRequest::Client>(SimRequest::Client{
      world_.clock, *residency_, limits_.queue_timeout,
      [this](const std::string& what) { violate(what); },
      [this](const std::string& what) {
        ++reached_[what];
        if (what.starts_with("answer")) say(what);
      },
      [this](const std::shared_ptr<const catalog::Model>& model) { new_request(model); },
      [this](const SimRequest& request) {
        oracle_->on_served(request);
        if (!request.tenant().empty()) say("  " + request.tenant() + " has " + request.model());
        violate(turns_.on_served(request));
      },
      [this](const SimRequest& request) {
        oracle_->on_leaves(request);
        turns_.on_leaves(request);
        if (!request.tenant().empty()) say("  " + request.tenant() + " leaves " + request.model());
        end_job(&request, "");
      }});
  client_->one_tenant = tenants_.empty();
  world_.clock.on_step([this] { check_step(); });
}

Scenario::~Scenario() {
  world_.clock.on_step(nullptr);
  requests_.clear();  // they hang up, of which the oracles hear
}

ScenarioResult Scenario::run() {
  for (std::size_t step = 0; step < steps_ && violation_.empty(); ++step) {
    act();
    check_step();
    const std::uint64_t callbacks = random_.below(12);
    for (std::uint64_t i = 0; i < callbacks && world_.clock.run_one(); ++i) continue;
    if (world_.clock.idle()) check_quiet();
  }
  if (violation_.empty()) {
    if (random_.percent(10)) {
      destroy_early();
    } else {
      come_to_rest();
    }
  }
  ScenarioResult result;
  result.violation = violation_;
  result.fingerprint = world_.clock.fingerprint();
  result.loads = world_.workers.all().size();
  result.requests = made_;
  result.reached = std::move(reached_);
  return result;
}

WorkerScript Scenario::draw_script(const std::string& model) {
  WorkerScript script;
  script.sequences = static_cast<std::uint32_t>(random_.between(1, 3));
  script.prepare = random_.between(Duration::zero(), milliseconds(20));
  script.listen = random_.between(Duration::zero(), milliseconds(100));
  script.load = random_.between(milliseconds(1), milliseconds(900));
  if (!calm_ && random_.percent(15)) script.load = random_.between(seconds(1), seconds(15));
  script.token_every = random_.between(milliseconds(1), seconds(random_.percent(20) ? 5 : 1));
  if (calm_) return script;
  constexpr std::uint64_t kFates = static_cast<std::uint64_t>(Fate::kDiesBusy) + 1;
  if (random_.percent(60)) script.fate = static_cast<Fate>(random_.below(kFates));
  script.fate_after = random_.between(Duration::zero(), milliseconds(800));
  script.exit = random_.percent(50)
                    ? core::ExitStatus(core::Exited{static_cast<int>(random_.below(3))})
                    : core::ExitStatus(core::Signalled{SIGSEGV, random_.percent(50)});
  if (random_.percent(30)) script.failure_class = "resource";
  // A worker may say what it cannot know.
  if (random_.percent(10)) script.failure_class = random_.percent(50) ? "oom" : "launch";
  script.kernel_tells_of_oom = random_.percent(15);
  world_.free_memory = random_.between(std::uint64_t{1} << 30U, std::uint64_t{4} << 30U);
  script.computes = random_.percent(70);
  script.wedges = random_.percent(5);
  script.ignores_term = random_.percent(15);
  script.term_to_exit = random_.between(Duration::zero(), seconds(random_.percent(20) ? 12 : 1));
  if (random_.percent(10)) {
    script.kill_to_exit =
        random_.between(seconds(4), random_.percent(30) ? kSlowestKill : seconds(9));
  }
  if (random_.percent(30)) script.memory_comes_back = random_.between(Duration::zero(), seconds(7));
  script.log_never_read = random_.percent(10);
  if (random_.percent(20)) script.exit_to_notice = random_.between(Duration::zero(), seconds(2));
  if (random_.percent(30)) draw_log(script);
  say("script of " + model + ": " + std::string(fate_name(script.fate)));
  return script;
}

void Scenario::draw_log(WorkerScript& script) {
  static const std::string kFrames =
      "Traceback (most recent call last):\n  File \"a.py\", line 1\n";
  static const std::string kChain =
      "\nDuring handling of the above exception, another exception occurred:\n\n";
  const Duration first = random_.between(Duration::zero(), milliseconds(900));
  const Duration second = first + random_.between(Duration::zero(), milliseconds(300));
  switch (random_.below(5)) {
    case 0:
      script.prints = {{first, kFrames + "ValueError: no such model\n"}};
      break;
    case 1:
      script.prints = {{first, kFrames + "ValueError: no such model\n"},
                       {second, kChain + kFrames + "ConnectionResetError: peer\n"}};
      break;
    case 2:
      script.prints = {{first, "GGML_ASSERT(n_tok"}, {second, "ens > 0) failed\n"}};
      break;
    case 3:
      script.prints = {{first, "loading\n"}, {second, "half a line"}};
      break;
    default:
      script.last_words = "GGML_ASSERT(n_tokens > 0) failed\n";
      break;
  }
}

void Scenario::act() {
  const std::uint64_t dice = random_.below(100);
  if (dice < 26) {
    new_request(random_.pick(models_));
  } else if (dice < 36) {
    if (SimRequest* request = some_request()) {
      say("hang up on " + request->model());
      request->hang_up();
    }
  } else if (dice < 54) {
    if (SimRequest* request = some_request()) request->release();
  } else if (dice < 74) {
    pass_time(milliseconds(300));
  } else if (dice < 79) {
    begin_job();
  } else if (dice < 80) {
    grow_bank();
  } else if (dice < 88) {
    pass_time(seconds(3));
  } else if (dice < 90) {
    pass_time(minutes(2));
  } else if (dice < 92) {
    unload(random_.pick(models_)->name, false);
  } else if (dice < 93) {
    pin_something();
  } else if (dice < 95) {
    if (random_.percent(70)) {
      change_memory();
    } else {
      measure_something();
    }
  } else if (dice < 96) {
    unload(random_.pick(models_)->name, true);
  } else if (dice < 98) {
    kill_some_worker();
  } else if (dice < 99) {
    say("suspend");
    world_.clock.suspend(random_.between(seconds(1), minutes(60)));
  } else {
    act_seldom();
  }
  std::erase_if(requests_, [](const std::unique_ptr<SimRequest>& request) {
    return request->state() == SimRequest::State::kDone;
  });
}

void Scenario::act_seldom() {
  const std::uint64_t dice = random_.below(100);
  if (dice < 80) {
    change_settings();
  } else if (random_.percent(20)) {
    shut_down(random_.between(Duration::zero(), seconds(20)));
  }
}

void Scenario::new_request(const std::shared_ptr<const catalog::Model>& model) {
  // Retries come from within callbacks; a bound keeps a failing model from making them for ever.
  if (requests_.size() > 64) return;
  Duration patience = random_.between(Duration::zero(), seconds(60));
  if (random_.percent(40)) patience = random_.between(Duration::zero(), seconds(2));
  auto request_class =
      random_.percent(85) ? residency::RequestClass::kForeground : residency::RequestClass::kIdle;
  if (random_.percent(8)) request_class = residency::RequestClass::kOperator;
  std::shared_ptr<const residency::RequestEntry> entry;
  if (request_class == residency::RequestClass::kForeground && !tenants_.empty()) {
    entry = random_.pick(tenants_);
  }
  // Else a failure would stand for the rest of the run.
  if (random_.percent(30)) {
    say("retry " + model->name);
    residency_->retry(model->name, "");
  }
  say("request for " + model->name + (entry ? " of " + entry->arrival().tenant : ""));
  ++made_;
  requests_.push_back(std::make_unique<SimRequest>(*client_, model, world_.clock.now() + patience,
                                                   request_class, random_.fork(), entry));
  requests_.back()->begin();
}

SimRequest* Scenario::some_request() {
  if (requests_.empty()) return nullptr;
  return random_.pick(requests_).get();
}

void Scenario::unload(const std::string& model, bool force) {
  say((force ? "unload by force " : "unload ") + model);
  const auto owed = owe("unload of " + model, kStopBound);
  ordering_ = model;
  if (force) {
    oracle_->on_forced_unload(model);
    turns_.on_break(model);
  }
  residency_->unload(
      model, force, [this, owed, force](const Result<residency::UnloadOutcome>& out) {
        ++owed->answers;
        if (out) return;
        const Reason reason = out.error().reason;
        const bool known = reason == Reason::kNotFound || reason == Reason::kInternal ||
                           (reason == Reason::kConflict && !force);
        if (!known) violate("unload failed with " + std::string(reason_info(reason).name));
      });
  ordering_.clear();
}

void Scenario::shut_down(Duration drain) {
  say("shutdown");
  shutting_down_ = true;
  if (oracle_) oracle_->draining = true;
  const auto owed = owe("shutdown", drain + kStopBound + kEvidence);
  ordering_ = "*";
  residency_->shutdown(drain, [this, owed] {
    ++owed->answers;
    shut_down_ = true;
    for (const residency::InstanceSnapshot& instance : residency_->instances()) {
      if (instance.state != "stuck") violate("shutdown is done and an instance lives");
    }
  });
  ordering_.clear();
}

void Scenario::kill_some_worker() {
  const auto present = world_.workers.present();
  if (present.empty()) return;
  const auto& worker = random_.pick(present);
  say("somebody kills the worker of " + worker->model());
  if (worker->alive()) worker->die(core::Signalled{SIGKILL, false});
}

void Scenario::pass_time(Duration most) {
  const SteadyTime end = world_.clock.now() + random_.between(Duration::zero(), most);
  while (violation_.empty()) {
    world_.clock.settle();
    check_quiet();
    if (world_.clock.now() >= end) break;
    world_.clock.jump(end);
  }
}

void Scenario::come_to_rest() {
  say("the faults stop");
  calm_ = true;
  client_->calm = true;
  calm_memory();
  for (const auto& request : requests_) request->release();
  const SteadyTime end = world_.clock.now() + kRest;
  while (violation_.empty() && world_.clock.now() < end) {
    world_.clock.settle();
    check_quiet();
    world_.clock.jump(end);
  }
  world_.clock.settle();
  for (const auto& request : requests_) {
    if (request->state() == SimRequest::State::kWaiting) {
      violate("a request for " + request->model() + " waits after the faults have stopped");
    }
    request->hang_up();
  }
  for (const residency::InstanceSnapshot& instance : residency_->instances()) {
    // A ttl may pass at any time.
    const bool serves = instance.state == "ready" || instance.state == "busy";
    const bool leaves =
        instance.state == "draining" || instance.state == "stopping" || instance.state == "stuck";
    const Duration bound = instance.state == "stuck" ? kSlowestKill : kStopBound;
    if (!serves && !(leaves && world_.clock.wall_now() - instance.state_since <= bound)) {
      violate("an instance of " + instance.model + " is " + instance.state + " at rest");
    }
  }
  if (!shutting_down_) shut_down(seconds(5));
  world_.clock.advance(kRest);
  if (!shut_down_) violate("shutdown did not end");
  if (violation_.empty()) violate(order_.at_rest());
  if (violation_.empty()) violate(records_.at_rest(*residency_));
  if (!residency_->instances().empty()) violate("an instance is left");
  for (const auto& [id, record] : world_.store.load_records()) {
    if (!record.ended) violate("the record of load " + id + " has no end: " + record.outcome);
  }
}

void Scenario::destroy_early() {
  jobs_.clear();
  say("the residency is destroyed");
  world_.clock.on_step(nullptr);
  client_->complain = [this](const std::string& what) { violate(what + " after the end"); };
  residency_.reset();
  for (const auto& worker : world_.workers.all()) {
    if (worker->alive()) violate("a worker outlived its supervisor");
  }
  calm_ = true;
  client_->calm = true;
  requests_.clear();
  world_.clock.advance(kRest);
}

void Scenario::on_event(const Event& event) {
  if (trace_) say(logfmt(event));
  std::string reach(event.name);
  for (const std::string_view field : {"cause", "failure_class", "why"}) {
    const std::string value = SimEvents::field(event, field);
    if (!value.empty()) reach += " " + value;
  }
  ++reached_[reach];
  violate(order_.on_event(event));
  violate(oracle_->on_event(event));
  if (event.name == "instance.exited") {
    notice_return(SimEvents::field(event, "instance"));
    end_job(nullptr, SimEvents::field(event, "instance"));
  }
  if (event.name == "load.started") turns_.on_admit(SimEvents::field(event, "instance"));
  if (event.name == "load.failed") turns_.on_break(SimEvents::field(event, "model"));
  records_.on_event(event);
  const std::string cause = SimEvents::field(event, "cause");
  const std::string model = SimEvents::field(event, "model");
  const bool ordered = cause == "unload" || cause == "forced_unload" || cause == "shutdown";
  // The server's own decisions.
  if (cause == "evicted" || cause == "job_ended") return;
  if (event.name == "load.interrupted" && !ordered) violate("a load interrupted by " + cause);
  if ((event.name == "load.interrupted" ||
       (event.name == "instance.stopping" && ordered && cause != "shutdown")) &&
      ordering_ != model && ordering_ != "*") {
    violate(std::string(event.name) + " of " + model + " that nobody ordered");
  }
}

void Scenario::violate(const std::string& what) {
  if (what.empty() || !violation_.empty()) return;
  violation_ = what;
  world_.clock.stop();
  say("VIOLATION: " + what);
  show_memory();
}

void Scenario::say(const std::string& what) {
  if (!trace_) return;
  const auto now = std::chrono::duration<double>(world_.clock.now().time_since_epoch());
  std::printf("%12.6f %s\n", now.count(), what.c_str());
}

}  // namespace berth::sim
