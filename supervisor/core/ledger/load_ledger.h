#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/ledger/memory_rule.h"
#include "supervisor/core/ledger/provenance.h"

namespace berth::core {

// Which failures stand (L18 to L24): at most one for each model, and as long as it stands the model
// is not tried. The history is the store's; what this decides comes back as values, for the store
// and the events. Owns the standing records and what each load started with. Core strand; a value;
// pure. Lives as long as the residency. Bounded by `most_models`; beyond it the oldest failure is
// forgotten, which costs one more try. Nothing fails.
class LoadLedger {
 public:
  static constexpr std::size_t kMostModels = 4096;
  // Longer than it takes to see what no file system reports: see ProgramWatch::kSweepPeriod.
  static constexpr Duration kQuickTime = std::chrono::seconds(45);
  static constexpr int kMostQuickLifts = 3;  // one who edits fast needs some

  struct Lifted {
    Uuid id;  // of the record
    std::string model;
    FailureClass failure_class = FailureClass::kUnclassified;  // of the record
    Lift lift;
  };
  struct Recorded {
    FailureRecord record;          // to be kept: bounded, and lifted where it does not stand
    std::optional<Lifted> before;  // the failure that stood until now
  };
  // What a load would start with now; absent: the model is not in the catalogue, so nobody can ask
  // for it and nothing moves.
  using ProvenanceOf = std::function<std::optional<Provenance>(const std::string& model)>;

  explicit LoadLedger(std::size_t most_models = kMostModels) : most_models_(most_models) {}

  // The failure that stands against the model; null: none. Costs one look-up in a tree. Valid until
  // the next call that changes something.
  [[nodiscard]] const FailureRecord* standing(std::string_view model) const;
  // Ditto, but also one that waits for how the load that is under way ends: a retry lifts it, too.
  [[nodiscard]] const FailureRecord* standing_or_waiting(std::string_view model) const;
  // Every failure that stands, by model.
  [[nodiscard]] std::vector<const FailureRecord*> all_standing() const;

  // A load begins: from now on this is the model's current instance (L24), and its failure will be
  // about this provenance (L19).
  void load_started(const std::string& model, const Uuid& instance, Provenance provenance);
  // What was found of the program just before that load executed it; of an older instance: nothing
  // happens.
  void program_seen(const std::string& model, const Uuid& instance,
                    std::optional<std::vector<ProgramFile>> program);

  // A load failed by itself, or a model that was ready died too often. Of an instance that is no
  // longer the model's current one the record is kept, but does not stand (L24). Giving a record
  // twice changes nothing.
  Recorded record(FailureRecord record);

  // That load ended before anything is known of the model: it leaves no mark (L20). What waited for
  // its end stands, and is to be judged: it was not meanwhile. Of an older instance: nothing
  // happens.
  void load_interrupted(const std::string& model, const Uuid& instance);

  // The load of that instance succeeded. Of an older instance: nothing happens.
  std::optional<Lifted> loaded(const std::string& model, const Uuid& instance, WallTime when);
  // An operator wants another try; `who` may be empty.
  std::optional<Lifted> retry(const std::string& model, std::string who, WallTime when);
  // The catalogue, the config or a program changed (L23). A file of an argument that was written
  // while the load ran lifts its failure once: it may have been mended meanwhile. When the next
  // load shows the same it is what the program itself writes, like a log, and lifts nothing; after
  // a restart that is so from the start. Where the file system's clock is another one the times of
  // files tell nothing: then kMostQuickLifts failures in a row whose argument files moved within
  // kQuickTime of their end decide that those are the program's own, too, until a load succeeds,
  // something else lifts, or somebody retries. What moves later than that lifts all the same.
  std::optional<Lifted> judge(const std::string& model, const Provenance& now, WallTime when);
  // Memory became free, or plans changed (L21).
  std::optional<Lifted> judge_memory(const std::string& model, std::span<const DomainNow> domains,
                                     WallTime when);

  // The server starts with the standing records that the store kept, in any order; one that is
  // lifted says nothing any more. What does not outlive a restart or whose provenance
  // moved meanwhile is lifted. Best before anything else; where it comes later, a model that was
  // loaded or has failed meanwhile keeps what is known of it since, and its older failure is
  // superseded. While a load is under way the older failure waits for how that ends.
  std::vector<Lifted> on_start(std::vector<FailureRecord> records,
                               const ProvenanceOf& provenance_of, WallTime when);

 private:
  struct Entry {
    std::optional<FailureRecord> standing;
    Uuid current;                          // nil: none was started yet
    Provenance started;                    // of `current`
    bool loading = false;                  // `current` is under way
    bool decided = false;                  // a load of this run of the server succeeded or failed
    std::optional<FailureRecord> waiting;  // stands again if `current` is interrupted
    std::uint32_t shortages = 0;           // launches in a row that lacked what starts a process
    std::set<std::string> written;         // files of arguments that change while it loads
    int quick_lifts = 0;                   // in a row, by files of arguments alone
    // What the load of the standing failure itself left of its program; absent: nothing of its own.
    std::optional<std::vector<ProgramFile>> left;
  };

  static constexpr std::size_t kMostWritten = 64;

  Entry* find(std::string_view model);
  // Whether the standing failure's program differs only by what its own load wrote.
  static bool wrote_itself(Entry& entry, const Provenance& now, WallTime when);
  static void note_written(Entry& entry, const Provenance& now);
  Entry& entry_of(const std::string& model);
  void make_room();
  static std::optional<Lifted> lift(Entry& entry, Lift lift);
  // What waits stands again.
  static void take_back(Entry& entry);

  std::size_t most_models_;
  std::map<std::string, Entry, std::less<>> entries_;  // by model
};

}  // namespace berth::core
