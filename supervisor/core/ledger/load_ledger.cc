#include "supervisor/core/ledger/load_ledger.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace berth::core {

const FailureRecord* LoadLedger::standing(std::string_view model) const {
  const auto at = entries_.find(model);
  if (at == entries_.end() || !at->second.standing) return nullptr;
  return &*at->second.standing;
}

const FailureRecord* LoadLedger::standing_or_waiting(std::string_view model) const {
  const auto at = entries_.find(model);
  if (at == entries_.end()) return nullptr;
  const Entry& entry = at->second;
  if (entry.standing) return &*entry.standing;
  return entry.waiting ? &*entry.waiting : nullptr;
}

std::vector<const FailureRecord*> LoadLedger::all_standing() const {
  std::vector<const FailureRecord*> all;
  for (const auto& [model, entry] : entries_) {
    if (entry.standing) all.push_back(&*entry.standing);
  }
  return all;
}

void LoadLedger::load_started(const std::string& model, const Uuid& instance,
                              Provenance provenance) {
  Entry& entry = entry_of(model);
  entry.current = instance;
  entry.loading = true;
  entry.started = std::move(provenance);
}

void LoadLedger::program_seen(const std::string& model, const Uuid& instance,
                              std::optional<std::vector<ProgramFile>> program) {
  Entry* entry = find(model);
  if (entry && entry->current == instance) entry->started.program = std::move(program);
}

LoadLedger::Recorded LoadLedger::record(FailureRecord record) {
  Recorded recorded;
  Entry& entry = entry_of(record.model);
  if (entry.standing && entry.standing->id == record.id) {
    recorded.record = *entry.standing;
    return recorded;
  }
  const bool late = !entry.current.is_nil() && entry.current != record.instance;
  if (!late && !entry.current.is_nil()) record.provenance = entry.started;
  record = bounded(std::move(record));
  if (late && !record.lifted) {
    record.lifted = Lift{record.ended, LiftCause::kSuperseded, std::nullopt, {}};
  }
  if (!record.lifted) {
    entry.loading = false;
    entry.decided = true;
    take_back(entry);
    recorded.before = lift(entry, {record.ended, LiftCause::kSuperseded, std::nullopt, {}});
    entry.shortages = record.failing_domain == kLaunchDomain ? entry.shortages + 1 : 0;
    entry.standing = record;
  }
  recorded.record = std::move(record);
  return recorded;
}

void LoadLedger::load_interrupted(const std::string& model, const Uuid& instance) {
  Entry* entry = find(model);
  if (!entry || entry->current != instance) return;
  entry->loading = false;
  take_back(*entry);
}

std::optional<LoadLedger::Lifted> LoadLedger::loaded(const std::string& model, const Uuid& instance,
                                                     WallTime when) {
  Entry* entry = find(model);
  if (!entry || entry->current != instance) return std::nullopt;
  entry->loading = false;
  entry->decided = true;
  entry->quick_lifts = 0;
  take_back(*entry);
  entry->shortages = 0;
  return lift(*entry, {when, LiftCause::kSuccess, std::nullopt, {}});
}

std::optional<LoadLedger::Lifted> LoadLedger::retry(const std::string& model, std::string who,
                                                    WallTime when) {
  Entry* entry = find(model);
  if (!entry) return std::nullopt;
  entry->quick_lifts = 0;
  take_back(*entry);
  return lift(*entry, {when, LiftCause::kHand, std::nullopt, std::move(who)});
}

std::optional<LoadLedger::Lifted> LoadLedger::judge(const std::string& model, const Provenance& now,
                                                    WallTime when) {
  Entry* entry = find(model);
  if (!entry) return std::nullopt;
  if (!entry->standing) return std::nullopt;
  std::optional<MovedField> moved = moved_field(entry->standing->provenance, now);
  if (!moved) return std::nullopt;
  if (moved->field == ProvenanceField::kProgram) {
    if (wrote_itself(*entry, now, when)) return std::nullopt;
  } else {
    entry->quick_lifts = 0;
  }
  return lift(*entry, {when, LiftCause::kProvenance, std::move(moved), {}});
}

std::optional<LoadLedger::Lifted> LoadLedger::judge_memory(const std::string& model,
                                                           std::span<const DomainNow> domains,
                                                           WallTime when) {
  Entry* entry = find(model);
  if (!entry || !entry->standing) return std::nullopt;
  std::optional<std::string> better = memory_lifts(*entry->standing, domains);
  if (!better) better = shortage_lifts(*entry->standing, entry->shortages, when);
  if (!better) return std::nullopt;
  return lift(*entry, {when, LiftCause::kMemory, std::nullopt, std::move(*better)});
}

std::vector<LoadLedger::Lifted> LoadLedger::on_start(std::vector<FailureRecord> records,
                                                     const ProvenanceOf& provenance_of,
                                                     WallTime when) {
  // From the oldest to the newest, so that the newest of a model stands in the end.
  std::ranges::sort(
      records, {}, [](const FailureRecord& record) { return std::tuple(record.ended, record.id); });
  std::vector<Lifted> lifted;
  const auto keep = [&lifted](std::optional<Lifted> one) {
    if (one) lifted.push_back(std::move(*one));
  };
  std::set<std::string> restored;
  for (FailureRecord& record : records) {
    if (record.lifted) continue;
    const Entry* const known = find(record.model);
    if (known != nullptr && !restored.contains(record.model) &&
        (known->standing || known->decided)) {
      const bool same = known->standing && known->standing->id == record.id;
      if (same) continue;
      lifted.push_back({record.id,
                        record.model,
                        record.failure_class,
                        {when, LiftCause::kSuperseded, std::nullopt, {}}});
      continue;
    }
    restored.insert(record.model);
    Entry& entry = entry_of(record.model);
    keep(lift(entry, {when, LiftCause::kSuperseded, std::nullopt, {}}));
    entry.standing = std::move(record);
  }
  for (const std::string& model : restored) {
    const std::optional<Provenance> now = provenance_of(model);
    // What moved says more than that the server was started anew.
    if (now) {
      if (Entry* const known = find(model)) note_written(*known, *now);
      keep(judge(model, *now, when));
    }
    Entry* const entry = find(model);  // absent where there was no room for all
    if (entry != nullptr && entry->standing && !outlives_restart(*entry->standing)) {
      keep(lift(*entry, {when, LiftCause::kRestart, std::nullopt, {}}));
    }
    if (entry != nullptr && entry->loading) entry->waiting = std::exchange(entry->standing, {});
  }
  return lifted;
}

bool LoadLedger::wrote_itself(Entry& entry, const Provenance& now, WallTime when) {
  const FailureRecord& record = *entry.standing;
  const bool quick = when - record.ended < kQuickTime;
  if (!only_arguments_moved(record.provenance, now)) {
    entry.quick_lifts = 0;
    return false;
  }
  if (entry.left && entry.left == now.program) return true;
  const auto written = arguments_written(record.provenance, now, record.started, record.ended);
  bool own = written && std::ranges::all_of(*written, [&entry](const std::string& path) {
               return entry.written.contains(path);
             });
  if (!own) note_written(entry, now);
  own = own || (quick && entry.quick_lifts >= kMostQuickLifts);
  if (own) {
    entry.left = now.program;
  } else {
    entry.quick_lifts = quick ? entry.quick_lifts + 1 : 0;
  }
  return own;
}

void LoadLedger::note_written(Entry& entry, const Provenance& now) {
  if (!entry.standing) return;
  const FailureRecord& record = *entry.standing;
  const auto written = arguments_written(record.provenance, now, record.started, record.ended);
  if (!written) return;
  if (entry.written.size() + written->size() > kMostWritten) entry.written.clear();
  entry.written.insert(written->begin(), written->end());
}

LoadLedger::Entry* LoadLedger::find(std::string_view model) {
  const auto at = entries_.find(model);
  return at == entries_.end() ? nullptr : &at->second;
}

LoadLedger::Entry& LoadLedger::entry_of(const std::string& model) {
  if (Entry* entry = find(model)) return *entry;
  if (entries_.size() >= most_models_) make_room();
  return entries_[model];
}

void LoadLedger::make_room() {
  if (entries_.empty()) return;
  // Those without a failure first; then by age.
  const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& named) {
    const Entry& entry = named.second;
    return std::pair(entry.standing.has_value(),
                     entry.standing ? entry.standing->ended : WallTime());
  });
  entries_.erase(oldest);
}

std::optional<LoadLedger::Lifted> LoadLedger::lift(Entry& entry, Lift lift) {
  if (!entry.standing) return std::nullopt;
  Lifted lifted{entry.standing->id, entry.standing->model, entry.standing->failure_class,
                std::move(lift)};
  entry.standing.reset();
  entry.left.reset();
  return lifted;
}

void LoadLedger::take_back(Entry& entry) {
  if (entry.waiting && !entry.standing) entry.standing = std::move(entry.waiting);
  entry.waiting.reset();
}

}  // namespace berth::core
