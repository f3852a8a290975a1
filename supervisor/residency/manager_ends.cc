#include "supervisor/residency/manager.h"

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/clock.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/instance_state.h"
#include "supervisor/core/ledger/verdict.h"
#include "supervisor/residency/evidence.h"
#include "supervisor/residency/instance.h"

// How instances end, and what stands against a model since.
namespace berth::residency {

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

void Manager::restore_failures(std::function<void()> done) {
  failures_.restore(std::move(done));
}

void Manager::catalog_changed() {
  take_configured_pins();
  // Somebody may wait for what is another model now, or none.
  room_.changed();
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
  if (!berth->second.back_off_timer.armed()) return;
  berth->second.back_off_timer.reset();
  // Who waited for its end need not any more.
  environment_.clock.post([weak = weak_from_this(), model] {
    if (const auto self = weak.lock()) self->start_if_wanted(self->berths_.at(model));
  });
}

}  // namespace berth::residency
