#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/scenario_times.h"

// What must hold after every step, and whenever nothing is left to run.
namespace berth::sim {

void Scenario::check_step() {
  if (!violation_.empty()) return;
  for (const auto& request : requests_) request->check();
  oracle_->look();
  check_owed();
  check_processes();

  std::map<std::string, std::uint32_t> held;
  for (const auto& request : requests_) {
    const std::string instance = request->held_instance();
    if (!instance.empty()) ++held[instance];
  }
  std::map<std::string, int> serving;
  std::map<std::string, std::uint32_t> active_now;
  for (const residency::InstanceSnapshot& instance : residency_->instances()) {
    const std::string& state = instance.state;
    const bool leases = state == "ready" || state == "busy";
    if (leases || state == "starting" || state == "loading" || state == "closing") {
      if (++serving[instance.model] > 1) violate("two serving instances of " + instance.model);
    }
    const auto before = active_before_.find(instance.id);
    const std::uint32_t had = before == active_before_.end() ? 0 : before->second;
    if (instance.active > had && state != "busy")
      violate("a lease on an instance that is " + state);
    if (instance.active > 0 && (state == "starting" || state == "loading" || state == "ready")) {
      violate("leases on an instance that is " + state);
    }
    if (instance.sequences > 0 && held[instance.id] > instance.sequences) {
      violate("more leases on " + instance.model + " than it has sequences");
    }
    active_now[instance.id] = instance.active;
    ++reached_["state " + state];
  }
  active_before_ = std::move(active_now);
}

void Scenario::check_quiet() {
  if (!violation_.empty()) return;
  violate(oracle_->when_quiet());
  const SteadyTime now = world_.clock.now();
  std::map<std::string, std::uint32_t> held;
  std::set<std::string> waited_for;
  for (const auto& request : requests_) {
    const std::string instance = request->held_instance();
    if (!instance.empty()) ++held[instance];
    if (request->state() != SimRequest::State::kWaiting) continue;
    // Those whose load has failed wait for its evidence, and for nothing else.
    const SteadyTime end = order_.last_end(request->model());
    if (request->since() <= end && now <= end + kEvidence) continue;
    waited_for.insert(request->model());
  }
  for (const residency::InstanceSnapshot& instance : residency_->instances()) {
    if (instance.active != held[instance.id]) {
      violate("an instance of " + instance.model + " counts " + std::to_string(instance.active) +
              " leases of " + std::to_string(held[instance.id]));
    }
    const bool serves = instance.state == "ready" || instance.state == "busy";
    const bool free_place = serves && instance.active < instance.sequences;
    if (free_place && (instance.waiting > 0 || waited_for.contains(instance.model))) {
      violate("a request for " + instance.model + " waits beside a free place");
    }
  }
  for (const std::string& model : waited_for) {
    // Where memory is counted, the oracle judges whether room is to be made.
    if (!world_.memory.domains.empty()) break;
    if (residency_->state_of(model) != "absent") continue;
    const bool back_off = now < order_.last_death(model) + kStopBound + kBackOff;
    // Nothing is started again before it is known how the load before failed.
    const bool verdict = now <= order_.last_end(model) + kEvidence;
    if (!back_off && !verdict) violate("nothing is done for a request for " + model);
  }
}

void Scenario::check_processes() {
  std::map<std::string, std::string> states;  // by instance
  for (const residency::InstanceSnapshot& instance : residency_->instances()) {
    states[instance.id] = instance.state;
  }
  std::map<std::string, int> of_model;
  const auto present = world_.workers.present();
  const auto& records = world_.store.process_records();
  if (records.size() != present.size()) violate("the store's processes are not those that live");
  for (const auto& worker : present) {
    if (!records.contains(worker->instance())) violate("a process without its record");
    const auto state = states.find(worker->instance());
    if (state == states.end()) {
      violate("a process of " + worker->model() + " whose instance was given up");
      continue;
    }
    if (state->second == "stuck") {
      if (!worker->killed()) violate("stuck without SIGKILL");
    } else if (++of_model[worker->model()] > 1) {
      violate("two processes of " + worker->model());
    }
    if (worker->killed() && worker->terminated() &&
        *worker->killed() != *worker->terminated() + limits_.term_wait) {
      violate("SIGKILL was not sent 10 s after SIGTERM");
    }
    if (worker->terminated() && !worker->ready()) violate("SIGTERM for a worker that loads");
    const bool loads = state->second == "starting" || state->second == "loading";
    if (loads && !worker->ready() && log_told_of_the_end(*worker)) {
      violate("a load goes on after its log told of its end");
    }
  }
}

// L7, judged from the script alone.
bool Scenario::log_told_of_the_end(const SimWorker& worker) const {
  const std::string& text = worker.printed();
  if (worker.script().prints.empty() || text.empty() || text.back() != '\n') return false;
  if (text.find("ConnectionResetError") != std::string::npos) return false;
  if (text.find("ValueError") == std::string::npos &&
      text.find("GGML_ASSERT") == std::string::npos) {
    return false;
  }
  const Print& last = worker.script().prints.back();
  return worker.began() && world_.clock.now() > *worker.began() + last.after + kLongestHold;
}

void Scenario::check_owed() {
  for (const auto& owed : owed_) {
    if (owed->answers > 1) violate(owed->what + " was answered twice");
    if (owed->answers == 0 && world_.clock.now() > owed->until) violate(owed->what + " is late");
  }
  std::erase_if(owed_, [](const std::shared_ptr<Owed>& owed) { return owed.use_count() == 1; });
}

std::shared_ptr<Scenario::Owed> Scenario::owe(std::string what, Duration within) {
  owed_.push_back(std::make_shared<Owed>(Owed{std::move(what), world_.clock.now() + within}));
  return owed_.back();
}

}  // namespace berth::sim
