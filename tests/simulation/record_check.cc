#include "tests/simulation/record_check.h"

#include <chrono>
#include <memory>
#include <string>
#include <variant>

#include "supervisor/core/backoff.h"
#include "supervisor/core/exit_status.h"
#include "supervisor/core/failure.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_worker.h"

namespace berth::sim {

std::string RecordCheck::on_record(const core::FailureRecord& record) const {
  const std::string of = "the record of a failure of " + record.model;
  const auto worker = world_.workers.by_instance(record.instance.to_string());
  if (record.exit && (worker == nullptr || !worker->died_by_itself())) {
    return of + " blames an end that was ours: " + core::to_string(*record.exit);
  }
  if (record.failure_class == core::FailureClass::kCrashLoop) {
    return crash_loop_problem(record.model);
  }
  if (record.failure_class == core::FailureClass::kOom &&
      (worker == nullptr || !worker->script().kernel_tells_of_oom)) {
    return of + " is oom, and the kernel told nothing";
  }
  if (record.failure_class == core::FailureClass::kLaunch && worker != nullptr) {
    return of + " is of its launch, and it was launched";
  }
  return {};
}

std::string RecordCheck::crash_loop_problem(const std::string& model) const {
  // A death is known a little later than it happened, and its log is read then.
  constexpr Duration kLate = std::chrono::seconds(4);
  const SteadyTime since = world_.clock.now() - core::RestartBackoff::kLoopTime - kLate;
  std::size_t deaths = 0;
  for (const auto& worker : world_.workers.all()) {
    const bool own = worker->died_by_itself() && !worker->terminated() && !worker->killed();
    if (worker->model() == model && worker->ready() && own && *worker->ended() >= since) ++deaths;
  }
  if (deaths >= core::RestartBackoff::kLoopDeaths) return {};
  return "a crash_loop of " + model + " after " + std::to_string(deaths) + " deaths of its own";
}

void RecordCheck::on_event(const Event& event) {
  const std::string record = SimEvents::field(event, "record");
  if (event.name == "load.failed" || event.name == "failure.stands") told_.insert(record);
  if (event.name == "failure.lifted") lifted_.insert(record);
}

std::string RecordCheck::at_rest(const residency::Residency& residency) const {
  std::set<std::string> kept;
  std::set<std::string> standing;
  for (const auto& [id, record] : world_.store.failure_records()) {
    kept.insert(id.to_string());
    if (!record.lifted) standing.insert(id.to_string());
  }
  for (const std::string& record : told_) {
    if (!kept.contains(record)) return "the failure " + record + " was told and is not kept";
  }
  for (const std::string& record : lifted_) {
    if (standing.contains(record)) return "the failure " + record + " was lifted and stands";
  }
  for (const core::FailureRecord& record : residency.standing_failures()) {
    if (standing.erase(record.id.to_string()) == 0) {
      return "the failure " + record.id.to_string() + " stands, and the store does not know";
    }
  }
  return standing.empty() ? "" : "the store keeps " + *standing.begin() + ", which stands nowhere";
}

}  // namespace berth::sim
