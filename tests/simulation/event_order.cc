#include "tests/simulation/event_order.h"

#include <chrono>
#include <string>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/core/backoff.h"
#include "tests/simulation/sim_events.h"

namespace berth::sim {

std::string EventOrder::on_event(const Event& event) {
  const std::string name(event.name);
  if (name.starts_with("failure.")) return on_failure(event);
  if (!name.starts_with("load.") && !name.starts_with("instance.")) return {};
  const std::string id = SimEvents::field(event, "instance");
  const std::string model = SimEvents::field(event, "model");
  if (id.empty() || model.empty()) return name + " without its instance or model";

  if (name == "load.started") {
    if (seen_.contains(id)) return "load.started twice for " + id;
    if (standing_.contains(model)) return "a load of " + model + " although a failure stands";
    const bool process = SimEvents::field(event, "pid") != "0";
    const auto moved = moved_.find(model);
    const bool another = moved != moved_.end() && moved->second >= last_death(model);
    if (process && !another && clock_.now() < last_death(model) + core::RestartBackoff::kFirst) {
      return model + " was started before its back-off was over";
    }
    seen_[id] = {.model = model, .process = process};
    return {};
  }
  const auto at = seen_.find(id);
  if (at == seen_.end()) return name + " before load.started of " + id;
  Seen& seen = at->second;
  if (seen.model != model) return name + " names another model than load.started";
  const auto once = [&](bool& flag) -> std::string {
    if (flag) return name + " a second time for " + id;
    flag = true;
    return {};
  };

  if (name == "instance.stopping" || name == "instance.exited") ends_[model] = clock_.now();
  if (name == "load.progress") {
    return seen.ended || seen.exited ? "load.progress after the end of the load" : "";
  }
  if (name == "load.ready") {
    if (seen.exited || seen.stopping) return "load.ready of an instance that ends";
    seen.ready = true;
    return once(seen.ended);
  }
  if (name == "load.failed" || name == "load.interrupted") return once(seen.ended);
  if (name == "instance.stopping") {
    if (seen.exited) return "instance.stopping after the exit";
    return once(seen.stopping);
  }
  if (name == "instance.died") {
    if (!seen.ready) return "instance.died of an instance that was never ready";
    deaths_[model] = clock_.now();
    return once(seen.died);
  }
  if (name == "instance.stuck") {
    if (!seen.stopping || seen.exited) return "instance.stuck of an instance that is not stopping";
    return once(seen.stuck);
  }
  if (name == "instance.exited") {
    if (!seen.process) return "instance.exited without a process";
    return once(seen.exited);
  }
  return "unknown event " + name;
}

std::string EventOrder::on_failure(const Event& event) {
  const std::string model = SimEvents::field(event, "model");
  const std::string record = SimEvents::field(event, "record");
  if (event.name == "failure.stands") {
    return standing_.emplace(model, record).second ? "" : "two failures of " + model + " stand";
  }
  const auto at = standing_.find(model);
  if (at == standing_.end() || at->second != record)
    return "a failure is lifted that did not stand";
  standing_.erase(at);
  // An operator does not wait for a back-off either, nor need what has been changed.
  const std::string cause = SimEvents::field(event, "cause");
  if (cause == "hand") deaths_.erase(model);
  if (cause == "provenance") moved_[model] = clock_.now();
  return {};
}

std::string EventOrder::at_rest() const {
  for (const auto& [id, seen] : seen_) {
    if (!seen.ended) return "the load of " + id + " never ended";
    if (seen.process && !seen.exited) return "the process of " + id + " never exited";
  }
  return {};
}

SteadyTime EventOrder::last_death(const std::string& model) const {
  const auto at = deaths_.find(model);
  return at == deaths_.end() ? SteadyTime() : at->second;
}

SteadyTime EventOrder::last_end(const std::string& model) const {
  const auto at = ends_.find(model);
  return at == ends_.end() ? SteadyTime() : at->second;
}

}  // namespace berth::sim
