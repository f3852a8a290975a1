#include "supervisor/residency/failure_book.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/failure.h"
#include "supervisor/core/ledger/failure_memory.h"
#include "supervisor/core/mutation.h"

namespace berth::residency {
void FailureBook::restore(std::function<void()> done) {
  restored_ = std::move(done);
  restore_deadline_ =
      environment_.clock.sleep_for(kRestoreWait, [this] { restore_without(restore_problem_); });
  environment_.store.proven_loads(
      [weak = std::weak_ptr<FailureBook*>(self_)](Result<std::vector<store::ProvenLoad>> loads) {
        const auto self = weak.lock();
        if (!self || !loads) return;  // the next load of each model proves more than it must
        for (store::ProvenLoad& load : *loads) {
          (*self)->proven_.emplace(std::move(load.model), std::move(load.provenance));
        }
      });
  ask_store();
}

void FailureBook::ask_store() {
  environment_.store.standing_failures([weak = std::weak_ptr<FailureBook*>(self_)](
                                           Result<std::vector<core::FailureRecord>> records) {
    if (const auto self = weak.lock()) (*self)->on_read(std::move(records));
  });
}

void FailureBook::on_read(Result<std::vector<core::FailureRecord>> records) {
  if (!records) {
    restore_problem_ = records.error().message;
    restore_again_ = environment_.clock.sleep_for(restored_ ? kRestoreSoon : kRestoreLater,
                                                  [this] { ask_store(); });
    return;
  }
  restore_deadline_.reset();
  adopt(*std::move(records));
  if (restored_without_) {
    environment_.events.emit_typed(events::ServerDegraded{
        .part = "store", .problem = "Earlier failures of loads are known again."});
  }
  if (const auto done = std::exchange(restored_, nullptr)) done();
}

void FailureBook::restore_without(const std::string& cause) {
  restored_without_ = true;
  environment_.events.emit_typed(events::ServerDegraded{
      .part = "store",
      .problem = "Earlier failures of loads are not known, so that each model is tried: " + cause});
  if (const auto done = std::exchange(restored_, nullptr)) done();
}

void FailureBook::adopt(std::vector<core::FailureRecord> records) {
  const auto lifted = ledger_.on_start(
      std::move(records), [&](const std::string& model) { return provenance_of(model); },
      environment_.clock.wall_now());
  for (const core::LoadLedger::Lifted& one : lifted) lift(one);
}

const core::FailureRecord* FailureBook::standing(const std::string& model) {
  const core::FailureRecord* const record = ledger_.standing(model);
  if (record == nullptr) return nullptr;
  const core::FailureClass failure_class = record->failure_class;
  if (failure_class != core::FailureClass::kResource && failure_class != core::FailureClass::kOom) {
    return record;
  }
  const auto found = environment_.find_model ? environment_.find_model(model) : nullptr;
  const auto lifted =
      ledger_.judge_memory(model, memory(found.get()), environment_.clock.wall_now());
  if (!lifted) return record;
  lift(*lifted);
  return nullptr;
}

std::vector<core::FailureRecord> FailureBook::all_standing() const {
  std::vector<core::FailureRecord> all;
  for (const core::FailureRecord* record : ledger_.all_standing()) all.push_back(*record);
  return all;
}

void FailureBook::load_started(const catalog::Model& model, const Uuid& instance) {
  ledger_.load_started(model.name, instance,
                       environment_.provenance ? depends(model) : core::Provenance());
  memory_before_[model.name] = memory(nullptr);
}

LoadBasis FailureBook::load_prepared(const catalog::Model& model, const Uuid& instance) {
  if (!environment_.provenance) return {};
  core::Provenance provenance = environment_.provenance(model);
  ledger_.program_seen(model.name, instance, provenance.program);
  std::string hash = core::provenance_hash(provenance);
  basis_[model.name] = {instance, hash};
  const auto proven = proven_.find(model.name);
  const bool same = proven != proven_.end() && proven->second == hash;
  return {std::move(hash), same, std::move(provenance)};
}

void FailureBook::loaded(const std::string& model, const Uuid& instance) {
  const auto basis = basis_.find(model);
  if (basis != basis_.end() && basis->second.first == instance) {
    proven_[model] = basis->second.second;
  }
  if (const auto lifted = ledger_.loaded(model, instance, environment_.clock.wall_now())) {
    lift(*lifted);
  }
}

void FailureBook::load_interrupted(const std::string& model, const Uuid& instance) {
  ledger_.load_interrupted(model, instance);
  judge(model);
}

bool FailureBook::load_failed(core::FailureRecord record) {
  const auto before = memory_before_.find(record.model);
  for (const core::DomainNow& now : memory(nullptr, record.instance)) {
    core::FailureMemory& memory = core::row_of(record.memory, now.domain);
    memory.free_at_failure = now.free;
    if (before != memory_before_.end()) {
      const auto then = std::ranges::find(before->second, now.domain, &core::DomainNow::domain);
      if (then != before->second.end()) memory.free_before = then->free;
    }
    // The worker may have given back by now what it held: what was there for it counts.
    if (memory.free_before && now.free) {
      memory.free_at_failure = std::min(*memory.free_before, *now.free);
    }
  }
  core::LoadLedger::Recorded recorded = ledger_.record(std::move(record));
  if (recorded.before) lift(*recorded.before);
  const bool stands = !recorded.record.lifted;
  if (stands) {
    environment_.events.emit_typed(events::FailureStands{
        .model = recorded.record.model,
        .record = recorded.record.id.to_string(),
        .failure_class = std::string(core::failure_class_name(recorded.record.failure_class)),
        .reason = core::failure_sentence(recorded.record)});
  }
  const std::string model = recorded.record.model;
  if (!core::mutated(core::Mutation::kLostFailure)) {
    environment_.store.put_failure(std::move(recorded.record));
  }
  // What it depends on may have moved while it loaded (L23).
  return stands && !judge(model);
}

bool FailureBook::judge(const std::string& model) {
  if (ledger_.standing(model) == nullptr) return false;
  const auto present = provenance_of(model);
  if (!present) return false;
  const auto lifted = ledger_.judge(model, *present, environment_.clock.wall_now());
  if (lifted) lift(*lifted);
  return lifted.has_value();
}

std::optional<core::FailureRecord> FailureBook::retry(const std::string& model,
                                                      const std::string& who) {
  const core::FailureRecord* const known = ledger_.standing_or_waiting(model);
  if (known == nullptr) return std::nullopt;
  core::FailureRecord record = *known;
  if (const auto lifted = ledger_.retry(model, who, environment_.clock.wall_now())) {
    lift(*lifted);
    record.lifted = lifted->lift;
  }
  return record;
}

std::vector<std::string> FailureBook::catalog_changed() {
  if (environment_.find_model) {
    const auto gone = [this](const auto& entry) { return !environment_.find_model(entry.first); };
    std::erase_if(proven_, gone);
    std::erase_if(basis_, gone);
  }
  std::vector<std::string> models;
  for (const core::FailureRecord& record : all_standing()) {
    if (judge(record.model)) models.push_back(record.model);
  }
  return models;
}

void FailureBook::lift(const core::LoadLedger::Lifted& lifted) {
  environment_.store.lift_failure(lifted.id, lifted.lift);
  environment_.events.emit_typed(events::FailureLifted{
      .model = lifted.model,
      .record = lifted.id.to_string(),
      .failure_class = std::string(core::failure_class_name(lifted.failure_class)),
      .cause = std::string(core::lift_cause_name(lifted.lift.cause)),
      .detail = core::to_string(lifted.lift)});
}

std::optional<core::Provenance> FailureBook::provenance_of(const std::string& model) const {
  if (!environment_.find_model || !environment_.provenance) return std::nullopt;
  const std::shared_ptr<const catalog::Model> found = environment_.find_model(model);
  // One that cannot be used at present says nothing about its file; it is refused for that.
  if (!found || !found->problem.empty()) return std::nullopt;
  return depends(*found);
}

core::Provenance FailureBook::depends(const catalog::Model& model) const {
  core::Provenance provenance = environment_.provenance(model);
  if (!environment_.memory_access.domains) return provenance;
  provenance.budget.emplace();
  for (const core::Domain& domain : environment_.memory_access.domains()) {
    provenance.budget->emplace(domain.id, domain.budget);
  }
  return provenance;
}

std::vector<core::DomainNow> FailureBook::memory(const catalog::Model* model,
                                                 const Uuid& without) const {
  std::vector<core::DomainNow> domains = charged_(model, without);
  if (!environment_.memory) return domains;
  // What is free is better known by a look at it.
  for (core::DomainNow& now : environment_.memory()) {
    const auto same = std::ranges::find(domains, now.domain, &core::DomainNow::domain);
    if (same == domains.end()) {
      domains.push_back(std::move(now));
    } else if (now.free) {
      same->free = now.free;
    }
  }
  return domains;
}

}  // namespace berth::residency
