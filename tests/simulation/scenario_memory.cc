#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/memory/placement.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/scenario_times.h"

// The memory of a simulated machine: what models need of it, and what happens to it.
namespace berth::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr core::DomainIndex kDevice = 1;

}  // namespace

void Scenario::draw_memory() {
  limits_.plan.grace = random_.between(Duration::zero(), seconds(10));
  limits_.plan.retry_grace =
      random_.between(Duration::zero(), seconds(random_.percent(50) ? 1 : 10));
  limits_.plan.max_wait = random_.between(seconds(1), seconds(10));
  limits_.plan.foreign_wait = random_.between(seconds(1), seconds(10));
  if (random_.percent(40)) limits_.swap_drain = random_.between(Duration::zero(), seconds(5));
  oracle_ = std::make_unique<MemoryOracle>(world_, requests_, limits_.plan,
                                           [this] { return due_models(); });
  if (random_.percent(15)) return;  // nothing is counted
  const auto mib = [this](std::uint64_t low, std::uint64_t high) {
    return random_.between(low, high) * kMiB;
  };
  world_.memory.domains = {
      {.id = "host", .device = {}, .total = 4000 * kMiB, .budget = mib(1000, 3000)}};
  if (random_.percent(70)) {
    world_.memory.domains.push_back(
        {.id = "gpu", .device = "SIM0", .total = 2000 * kMiB, .budget = mib(800, 1900)});
  }
  const bool device = world_.memory.domains.size() > 1;
  for (const auto& model : models_) {
    auto& options = world_.memory.needs[model->name];
    const std::uint64_t size = random_.percent(4) ? mib(3000, 6000) : mib(200, 1000);
    if (device && random_.percent(60)) {
      core::PlacementOption& on = options.emplace_back();
      on.placement.shares = {{kDevice, 32}};
      on.bytes[kDevice] = size;
      if (random_.percent(50)) on.bytes[core::kHostDomain] = mib(1, 200);
    }
    if (options.empty() || random_.percent(25)) {
      options.push_back({.bytes = core::DomainBytes::in(core::kHostDomain, size)});
    }
  }
  world_.memory.changed = [this] {
    if (residency_) residency_->memory_changed();
  };
  world_.memory.jobs = [this] {
    std::vector<core::IdleJob> all;
    for (const auto& job : jobs_) all.push_back(job->idle);
    return all;
  };
  world_.memory.yield_jobs = [this](const std::vector<Uuid>& ids) { tell_to_yield(ids); };
  oracle_->jobs = [this] {
    std::vector<MemoryOracle::Job> all;
    for (const auto& job : jobs_) {
      all.push_back({job->idle.instance.to_string(), job->idle.extra, job->until});
    }
    return all;
  };
  world_.memory.sample_takes = random_.between(Duration::zero(), milliseconds(300));
  world_.memory.sample_never_comes = random_.percent(3);
  if (random_.percent(30)) {
    world_.memory.files_are_sane = [this](const std::string& /*model*/) {
      return calm_ || !random_.percent(5);
    };
  }
  world_.meter.measure = [this](const residency::MeteredLoad& load) {
    return random_.percent(30) ? measure(load.instance) : std::nullopt;
  };
  world_.on_admit = [this](const std::string& model, const std::string& instance,
                           const residency::LaunchPlan& plan) {
    violate(oracle_->on_admit(model, instance, plan.at));
  };
}

void Scenario::change_memory() {
  if (world_.memory.domains.empty()) return;
  core::Domain& domain =
      world_.memory.domains[static_cast<std::size_t>(random_.below(world_.memory.domains.size()))];
  if (random_.percent(25)) {
    domain.budget = domain.total / 100 * random_.between(std::uint64_t{25}, std::uint64_t{90});
    say("the budget of " + domain.id + " is " + std::to_string(domain.budget / kMiB) + " MiB");
  } else {
    domain.foreign = random_.percent(50) ? 0
                                         : domain.total / 100 *
                                               random_.between(std::uint64_t{1}, std::uint64_t{80});
    oracle_->on_foreign_use();
    say("foreign use of " + domain.id + " is " + std::to_string(domain.foreign / kMiB) + " MiB");
  }
  residency_->memory_changed();
}

std::optional<residency::MeasuredCharge> Scenario::measure(const Uuid& instance) {
  const std::string id = instance.to_string();
  const core::PlacementOption* const at = world_.memory.placed(id);
  const auto worker = world_.workers.by_instance(id);
  if (at == nullptr || !worker || worker->ended()) return std::nullopt;
  residency::MeasuredCharge charge;
  for (core::DomainIndex i = 0; i < core::kMaxDomains; ++i) {
    charge.bytes[i] = at->bytes[i] / 100 * random_.between(std::uint64_t{70}, std::uint64_t{140});
  }
  world_.memory.measured(id, charge.bytes);
  oracle_->on_measured(id, charge.bytes);
  say("an instance is measured");
  ++reached_["measured"];
  return charge;
}

void Scenario::measure_something() {
  for (const residency::InstanceSnapshot& instance : residency_->instances()) {
    if (instance.state != "ready" && instance.state != "busy") continue;
    if (!random_.percent(50)) continue;
    const Uuid id = Uuid::parse(instance.id);
    if (const auto charge = measure(id)) residency_->recharge(id, *charge);
    return;
  }
}

// What a process that is gone gives back late is seen by the next sample.
void Scenario::notice_return(const std::string& instance) {
  const auto worker = world_.workers.by_instance(instance);
  if (!worker || !worker->ended()) return;
  const auto timer = std::make_shared<Timer>();
  *timer = world_.clock.sleep_until(*worker->ended() + worker->script().memory_comes_back,
                                    [this, timer] {
                                      if (residency_) residency_->memory_changed();
                                      timer->reset();
                                    });
}

void Scenario::pin_something() {
  const std::string& model = random_.pick(models_)->name;
  if (random_.percent(60)) {
    if (!residency_->unpin(model)) return;
    say("unpin " + model);
    oracle_->on_pin(model, false);
  } else if (residency_->pin(random_.pick(models_))) {
    for (const auto& one : models_) oracle_->on_pin(one->name, residency_->pinned(one->name));
    say("pin");
  } else {
    ++reached_["pin refused"];
  }
}

void Scenario::calm_memory() {
  std::vector<SimRequest*> working;
  for (const auto& job : jobs_) working.push_back(job->request);
  for (SimRequest* request : working) request->hang_up();
  for (core::Domain& domain : world_.memory.domains) domain.foreign = 0;
  for (const auto& model : models_) {
    if (residency_->unpin(model->name)) oracle_->on_pin(model->name, false);
  }
  world_.memory.sample_never_comes = false;
  residency_->memory_changed();
}

// What the planner sees and would do, for a trace.
void Scenario::show_memory() {
  if (!trace_ || world_.memory.domains.empty()) return;
  const core::Snapshot now = residency_->memory_now();
  const auto show = [&](const core::DomainBytes& bytes) {
    std::string text;
    for (std::size_t i = 0; i < now.domains.size(); ++i) {
      text += " " + std::to_string(bytes[static_cast<core::DomainIndex>(i)] / kMiB);
    }
    return text;
  };
  for (const core::Domain& domain : now.domains) {
    say("  " + domain.id + " may give " + std::to_string(domain.limit() / kMiB) + " MiB");
  }
  for (const core::Entry& entry : now.entries) {
    say("  " + entry.model + " state " + std::to_string(static_cast<int>(entry.state)) + " has" +
        show(entry.charge) + ", clients " + std::to_string(entry.clients) + ", soft " +
        std::to_string(entry.soft) + (entry.pinned ? ", pinned" : ""));
  }
  for (const core::Hold& hold : now.holds) {
    say("  hold of " + hold.model + show(hold.bytes) + ", since " +
        std::to_string(std::chrono::duration<double>(hold.since.time_since_epoch()).count()));
  }
  say("  the bank has" + show(now.bank));
  for (const core::IdleJob& job : now.jobs)
    say("  a job on " + job.model + " has" + show(job.extra));
  for (const auto& model : models_) {
    std::string text = "  " + model->name + " needs";
    for (const auto& option : world_.memory.needs[model->name]) text += show(option.bytes) + " |";
    say(text + " " + std::string(core::decision_name(residency_->plan(*model).decision)));
  }
}

std::set<std::string> Scenario::due_models() const {
  std::set<std::string> due;
  const SteadyTime now = world_.clock.now();
  if (shutting_down_) return due;
  for (const auto& request : requests_) {
    if (request->state() != SimRequest::State::kWaiting) continue;
    const std::string& model = request->model();
    if (due.contains(model) || residency_->state_of(model) != "absent") continue;
    if (now < order_.last_death(model) + kStopBound + kBackOff) continue;
    if (now <= order_.last_end(model) + kEvidence) continue;
    if (order_.stands(model)) continue;  // its refusal is on its way
    due.insert(model);
  }
  return due;
}

}  // namespace berth::sim
