#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/ledger/load_ledger.h"
#include "tests/unit/core/ledger/records.h"

namespace berth::core {
namespace {

using testing::failure_record;
using testing::ledger_time;
using testing::numbered_id;
using testing::some_provenance;

constexpr std::size_t kModels = 3;
const std::string& model_name(std::size_t number) {
  static const std::vector<std::string> names = {"a", "b", "c"};
  return names.at(number % kModels);
}

// Drives a ledger at random and keeps what the store would have.
struct World {
  LoadLedger ledger{kModels};
  std::map<Uuid, FailureRecord> store;
  std::map<std::string, std::vector<Uuid>> instances;  // by model, the newest last
  std::map<std::string, std::uint32_t> windows;        // the provenance now
  std::uint64_t next = 1;

  [[nodiscard]] Provenance provenance(const std::string& model) const {
    Provenance now = some_provenance();
    const auto at = windows.find(model);
    if (at != windows.end()) now.window = at->second;
    return now;
  }
  WallTime tick() { return ledger_time(static_cast<std::int64_t>(next++)); }

  void lift(const std::optional<LoadLedger::Lifted>& lifted) {
    if (!lifted) return;
    const auto at = store.find(lifted->id);
    RC_ASSERT(at != store.end());
    RC_ASSERT(!at->second.lifted);
    RC_ASSERT(at->second.model == lifted->model);
    at->second.lifted = lifted->lift;
  }

  void start(const std::string& model) {
    instances[model].push_back(numbered_id(1'000'000 + next++));
    ledger.load_started(model, instances[model].back(), provenance(model));
  }

  void fail(const std::string& model, std::size_t which, FailureClass failure_class) {
    const std::vector<Uuid>& known = instances[model];
    if (known.empty()) return;
    FailureRecord record = failure_record(next++, model, failure_class);
    record.instance = known.at(which % known.size());
    record.exit = which % 2 == 0 ? ExitStatus(Exited{1}) : ExitStatus(Signalled{SIGKILL});
    const bool current = record.instance == known.back();
    const auto recorded = ledger.record(record);
    lift(recorded.before);
    store.insert_or_assign(record.id, recorded.record);
    // L24
    RC_ASSERT(recorded.record.lifted.has_value() != current);
    if (current) RC_ASSERT(ledger.standing(model)->id == record.id);
  }

  void step() {
    const std::string& model = model_name(*rc::gen::inRange<std::size_t>(0, kModels));
    const auto which = *rc::gen::inRange<std::size_t>(0, 8);
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        start(model);
        break;
      case 1:
        fail(model, which,
             static_cast<FailureClass>(
                 *rc::gen::inRange(0, static_cast<int>(FailureClass::kUnclassified) + 1)));
        break;
      case 2:
        if (!instances[model].empty()) lift(ledger.loaded(model, instances[model].back(), tick()));
        break;
      case 3:
        lift(ledger.retry(model, "", tick()));
        break;
      case 4:
        windows[model] = 512U * static_cast<std::uint32_t>(which + 1);
        lift(ledger.judge(model, provenance(model), tick()));
        break;
      default:
        restart();
        break;
    }
  }

  [[nodiscard]] std::vector<FailureRecord> records() const {
    std::vector<FailureRecord> all;
    for (const auto& [id, record] : store) all.push_back(record);
    return all;
  }

  void restart() {
    const WallTime when = tick();
    const auto now = [this](const std::string& model) {
      return std::optional<Provenance>(provenance(model));
    };
    LoadLedger fresh(kModels);
    for (const auto& lifted : fresh.on_start(records(), now, when)) lift(lifted);
    for (const FailureRecord* record : fresh.all_standing()) RC_ASSERT(outlives_restart(*record));
    // Another restart at once finds nothing to do.
    LoadLedger again(kModels);
    RC_ASSERT(again.on_start(records(), now, when).empty());
    RC_ASSERT(again.all_standing().size() == fresh.all_standing().size());
    ledger = fresh;
    instances.clear();
  }

  // The ledger and the store agree on what stands, and it is at most one for each model.
  void check() const {
    std::map<std::string, Uuid> standing;
    for (const auto& [id, record] : store) {
      if (!record.lifted) RC_ASSERT(standing.emplace(record.model, id).second);
    }
    RC_ASSERT(ledger.all_standing().size() == standing.size());
    for (const auto& [model, id] : standing) {
      RC_ASSERT(ledger.standing(model) != nullptr);
      RC_ASSERT(ledger.standing(model)->id == id);
    }
  }
};

RC_GTEST_PROP(LoadLedgerProperty, L18_L24_AtMostOneStandsAndTheStoreAgrees, ()) {
  World world;
  const auto steps = *rc::gen::inRange(0, 60);
  for (int i = 0; i < steps; ++i) {
    world.step();
    world.check();
  }
}

RC_GTEST_PROP(LoadLedgerProperty, L18_NeverHoldsMoreThanItsBound,
              (const std::vector<std::uint8_t>& models)) {
  constexpr std::size_t kMost = 5;
  LoadLedger ledger(kMost);
  std::uint64_t number = 0;
  for (const std::uint8_t model : models) {
    const std::string name = std::to_string(model);
    ledger.record(failure_record(++number, name, FailureClass::kPermanent));
    RC_ASSERT(ledger.standing(name) != nullptr);
    RC_ASSERT(ledger.all_standing().size() <= kMost);
  }
}

}  // namespace
}  // namespace berth::core
