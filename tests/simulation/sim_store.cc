#include "tests/simulation/sim_store.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "supervisor/store/store.h"

namespace berth::sim {

void SimStore::put_load(store::LoadRecord record) {
  std::string id = record.id;
  loads_.insert_or_assign(std::move(id), std::move(record));
}

void SimStore::loads(std::string model, std::size_t limit,
                     std::function<void(Result<std::vector<store::LoadRecord>>)> done) {
  std::vector<store::LoadRecord> found;
  for (auto at = loads_.rbegin(); at != loads_.rend() && found.size() < limit; ++at) {
    if (at->second.model == model) found.push_back(at->second);
  }
  clock_.post_from("store", [done = std::move(done), found = std::move(found)] { done(found); });
}

void SimStore::write(std::function<void()> work) {
  unwritten_.push_back(std::move(work));
  if (slow_failures <= Duration::zero()) return write_all();
  if (!disk_.armed()) disk_ = clock_.sleep_for(slow_failures, [this] { write_all(); });
}

void SimStore::write_all() {
  disk_.reset();
  for (const auto& work : std::exchange(unwritten_, {})) work();
}

void SimStore::proven_loads(std::function<void(Result<std::vector<store::ProvenLoad>>)> done) {
  std::map<std::string, const store::LoadRecord*> youngest;
  for (const auto& [id, record] : loads_) {
    if (!record.ready || record.provenance.empty()) continue;
    const store::LoadRecord*& known = youngest[record.model];
    if (known == nullptr || known->started <= record.started) known = &record;
  }
  std::vector<store::ProvenLoad> found;
  for (const auto& [model, record] : youngest) found.push_back({model, record->provenance});
  clock_.post_from("store", [done = std::move(done), found = std::move(found)] { done(found); });
}

void SimStore::put_failure(core::FailureRecord record) {
  if (on_failure) on_failure(record);
  write([this, record = std::move(record)] { keep(record); });
}

void SimStore::keep(core::FailureRecord record) {
  if (failures_.contains(record.id)) return;
  const std::string model = record.model;
  if (!record.lifted) {
    for (auto& [id, other] : failures_) {
      if (other.model != model || other.lifted) continue;
      other.lifted = core::Lift{record.ended, core::LiftCause::kSuperseded, std::nullopt, {}};
    }
  }
  failures_.emplace(record.id, std::move(record));
  // What is kept comes first: the one that stands, then the youngest.
  std::vector<const core::FailureRecord*> of_model;
  for (const auto& [id, other] : failures_) {
    if (other.model == model) of_model.push_back(&other);
  }
  std::ranges::sort(of_model, std::ranges::greater(), [](const core::FailureRecord* other) {
    return std::tuple(!other->lifted, other->ended, other->id);
  });
  for (std::size_t i = kFailuresPerModel; i < of_model.size(); ++i) {
    failures_.erase(Uuid(of_model[i]->id));
  }
}

void SimStore::lift_failure(Uuid id, core::Lift lift) {
  write([this, id, lift = std::move(lift)] {
    const auto at = failures_.find(id);
    if (at != failures_.end() && !at->second.lifted) at->second.lifted = lift;
  });
}

void SimStore::failures(std::string model, std::size_t limit,
                        std::function<void(Result<std::vector<core::FailureRecord>>)> done) {
  write_all();
  if (!fail_history.empty()) {
    clock_.post_from("store", [done = std::move(done), why = fail_history] {
      done(fail(Reason::kStoreUnavailable, why));
    });
    return;
  }
  std::vector<core::FailureRecord> found;
  for (const auto& [id, record] : failures_) {
    if (model.empty() || record.model == model) found.push_back(record);
  }
  std::ranges::sort(found, std::ranges::greater(), [](const core::FailureRecord& record) {
    return std::pair(record.ended, record.id);
  });
  if (found.size() > limit) found.resize(limit);
  clock_.post_from("store", [done = std::move(done), found = std::move(found)] { done(found); });
}

void SimStore::standing_failures(
    std::function<void(Result<std::vector<core::FailureRecord>>)> done) {
  write_all();
  std::vector<core::FailureRecord> found;
  for (const auto& [id, record] : failures_) {
    if (!record.lifted) found.push_back(record);
  }
  if (fail_reads) {
    clock_.post_from("store", [done = std::move(done)] {
      done(fail(Reason::kStoreUnavailable, "The database cannot be read."));
    });
    return;
  }
  std::ranges::sort(found, {}, &core::FailureRecord::model);
  clock_.post_from("store", [done = std::move(done), found = std::move(found)] { done(found); });
}

void SimStore::put_measured(store::MeasuredRecord record) {
  ++measured_writes;
  std::string key = record.key;
  measured_.insert_or_assign(std::move(key), std::move(record));
}

void SimStore::measured(std::function<void(Result<store::MeasuredRecords>)> done) {
  Result<store::MeasuredRecords> answer = store::MeasuredRecords{{}, unreadable_measured};
  for (const auto& [key, record] : measured_) answer->records.push_back(record);
  std::ranges::sort(answer->records, std::ranges::greater(), &store::MeasuredRecord::changed);
  if (fail_reads) answer = fail(Reason::kStoreUnavailable, "The database cannot be read.");
  clock_.post_from("store", [done = std::move(done), answer = std::move(answer)] { done(answer); });
}

void SimStore::put_process(store::ProcessRecord record) {
  std::string instance = record.instance;
  processes_.insert_or_assign(std::move(instance), std::move(record));
}

void SimStore::remove_process(std::string instance) {
  processes_.erase(instance);
}

void SimStore::processes(std::function<void(Result<std::vector<store::ProcessRecord>>)> done) {
  std::vector<store::ProcessRecord> all;
  for (const auto& [instance, record] : processes_) all.push_back(record);
  clock_.post_from("store", [done = std::move(done), all = std::move(all)] { done(all); });
}

void SimStore::put_event(Event event) {
  store::StoredEvent kept;
  kept.sequence = event.sequence;
  kept.time = event.time;
  kept.name = event.name;
  kept.level = event.level;
  for (EventField& field : event.fields) {
    kept.fields.emplace_back(field.name, std::move(field.value));
  }
  events_.try_emplace(event.sequence, std::move(kept));
}

void SimStore::events(store::EventFilter filter, std::size_t limit,
                      std::function<void(Result<store::EventPage>)> done) {
  const auto is_meant = [&filter](const store::StoredEvent& event) {
    if (event.time < filter.since || !event.name.starts_with(filter.prefix)) return false;
    if (event.sequence <= filter.after) return false;
    const auto has = [&event](const char* name, const std::string& value) {
      return std::ranges::find(event.fields, std::pair<std::string, FieldValue>(name, value)) !=
             event.fields.end();
    };
    if (!filter.request.empty() && !has("request", filter.request)) return false;
    if (filter.tenant.empty()) return true;
    if (event.name.starts_with("request.")) return has("tenant", filter.tenant);
    return std::ranges::find(filter.names, event.name) != filter.names.end();
  };
  store::EventPage page;
  const auto take = [&](const store::StoredEvent& event) {
    if (page.events.size() < limit && is_meant(event)) page.events.push_back(event);
  };
  if (filter.oldest_first) {
    for (const auto& [sequence, event] : events_) take(event);
  } else {
    for (auto at = events_.rbegin(); at != events_.rend(); ++at) take(at->second);
    std::ranges::reverse(page.events);
  }
  if (!events_.empty()) {
    page.oldest = events_.begin()->first;
    page.oldest_time = events_.begin()->second.time;
    page.youngest = events_.rbegin()->first;
  }
  ++event_asks;
  clock_.post_from("store", [done = std::move(done), page = std::move(page)] { done(page); });
}

}  // namespace berth::sim
