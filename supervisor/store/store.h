#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/memory/measured_load.h"

namespace berth::store {

// One load of a model, from spawn to its end.
struct LoadRecord {
  std::string id;  // the instance's UUIDv7
  std::string model;
  WallTime started{};
  std::optional<WallTime> ready;
  std::optional<WallTime> ended;
  std::string outcome;  // loading | ready | failed | interrupted | died | stopped
  std::string failure_class;
  std::string reason;  // at most 512 bytes
  std::string exit;    // as core::to_string(ExitStatus)
  std::int64_t load_ms = 0;
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t working_bytes = 0;
  std::string provenance;  // core::provenance_hash() of what it depended on; empty: not known
};

// What the last load of a model that became ready depended on.
struct ProvenLoad {
  std::string model;
  std::string provenance;
};

// What loads under one key took (M5).
struct MeasuredRecord {
  // What the last one was charged in a domain, and of that for the process itself. Bytes.
  struct Predicted {
    std::string domain;  // Domain::id
    std::uint64_t charge = 0;
    std::uint64_t overhead = 0;

    bool operator==(const Predicted&) const = default;
  };
  std::string key;    // core::measurement_key()
  std::string model;  // that was loaded last
  WallTime changed{};
  core::MeasuredLoad measured;
  std::vector<Predicted> predicted;

  bool operator==(const MeasuredRecord&) const = default;
};

// The youngest first.
struct MeasuredRecords {
  std::vector<MeasuredRecord> records;
  std::size_t unreadable = 0;  // rows that say nothing that can be used
};

// A worker process that was started and is not known to be gone.
struct ProcessRecord {
  std::string instance;
  std::string model;
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::string boot_id;
};

// An event as it was kept. Unlike Event it owns its names: it may come from another version of
// berth, whose catalogue had other events.
struct StoredEvent {
  std::uint64_t sequence = 0;
  WallTime time{};
  std::string name;
  Level level = Level::kInfo;
  std::vector<std::pair<std::string, FieldValue>> fields;
};

// Which events are meant; an empty text asks for nothing.
struct EventFilter {
  WallTime since{};         // at or after
  std::string prefix{};     // of the name
  std::string request{};    // the field `request`, as gateway::validate_request_id() takes it
  std::uint64_t after = 0;  // only higher sequences
  // What one tenant sees: of request.* those with it in the field `tenant`, of all others those of
  // these names.
  std::string tenant{};
  std::vector<std::string> names{};
  bool oldest_first = false;  // the oldest of these are given, else the youngest
};

// Some of the events that a filter takes, oldest first.
struct EventPage {
  std::vector<StoredEvent> events{};
  // Of all that are kept, whatever the filter; 0: none.
  std::uint64_t oldest = 0;
  WallTime oldest_time{};
  std::uint64_t youngest = 0;
};

// The supervisor's durable state. All calls from the core strand and return at once; work is done
// elsewhere in the order of the calls, and results come back on the core strand. A store that
// cannot write (full disk) keeps the supervisor serving: it drops what it cannot keep, says so once
// with server.degraded, and tries again later.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;  // what was given before is written first, within 5 s

  // Inserts or replaces the record of that id. At most 200 per model are kept.
  virtual void put_load(LoadRecord record) = 0;
  // Newest first, at most `limit`.
  virtual void loads(std::string model, std::size_t limit,
                     std::function<void(Result<std::vector<LoadRecord>>)> done) = 0;
  // Of each model with a load that became ready and whose provenance is known, the youngest.
  virtual void proven_loads(std::function<void(Result<std::vector<ProvenLoad>>)> done) = 0;

  // Keeps a failed load. If it stands, whatever stood against its model is superseded in the same
  // transaction; a record that is kept already stays as it is. At most 200 per model are kept: the
  // one that stands and the youngest.
  virtual void put_failure(core::FailureRecord record) = 0;
  // That failure does not stand any more, if it still does.
  virtual void lift_failure(Uuid id, core::Lift lift) = 0;
  // Newest first, at most `limit`; `model` empty: of all models.
  virtual void failures(std::string model, std::size_t limit,
                        std::function<void(Result<std::vector<core::FailureRecord>>)> done) = 0;
  // All that stand, by model.
  virtual void standing_failures(
      std::function<void(Result<std::vector<core::FailureRecord>>)> done) = 0;

  // Inserts or replaces what is known under that key. The kMeasuredKept that changed last are kept.
  static constexpr std::size_t kMeasuredKept = 1000;
  virtual void put_measured(MeasuredRecord record) = 0;
  virtual void measured(std::function<void(Result<MeasuredRecords>)> done) = 0;

  virtual void put_process(ProcessRecord record) = 0;
  virtual void remove_process(std::string instance) = 0;
  virtual void processes(std::function<void(Result<std::vector<ProcessRecord>>)> done) = 0;

  // Keeps an event whose sequence and time are set; one whose sequence is kept already changes
  // nothing. At most 50,000 are kept, the youngest.
  virtual void put_event(Event event) = 0;
  // At most `limit` events that the filter takes.
  virtual void events(EventFilter filter, std::size_t limit,
                      std::function<void(Result<EventPage>)> done) = 0;
};

}  // namespace berth::store
