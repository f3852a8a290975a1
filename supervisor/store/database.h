#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/store/store.h"

namespace berth::store {

// The SQLite file and every statement on it. Owns the connection. One thread at a time, except
// interrupt(); every call blocks on the disk. SQLite's exceptions end here.
// Errors of all calls: kStoreUnavailable (disk full, I/O, damaged) and kStoreBusy (another program
// holds the file), which may pass; kInternal (the file takes everything but this record).
class Database {
 public:
  struct Opened {
    std::unique_ptr<Database> database;
    // Not empty: the disk takes nothing at present, why. `database` is one in memory, with what is
    // in the file, if there is one.
    std::string without_file;
    std::string moved_aside;  // empty, or where the damaged file is now
    std::string damage;       // and what was wrong with it
  };

  // Opens or makes the file (mode 0600) and brings its schema up to date. A damaged file is moved
  // aside as PATH.corrupt-TIME (three of them are kept) and a new one begun. A file that was not
  // closed well is checked first, which reads all of it. Where the disk is full, so that the file
  // cannot be made, or opened, or its schema be changed, kInMemory serves without it
  // (Opened::without_file) and kFail is kStoreUnavailable. Errors: also kConflict, from a newer
  // berth.
  enum class IfFull : std::uint8_t { kInMemory, kFail };
  static Result<Opened> open(const std::string& path, WallTime now,
                             IfFull if_full = IfFull::kInMemory);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  Status begin();
  Status commit();
  void rollback();

  // Keeps `per_model` of the model's records, the youngest.
  Status put_load(const LoadRecord& record, std::size_t per_model);
  Result<std::vector<LoadRecord>> loads(const std::string& model, std::size_t limit);
  Result<std::vector<ProvenLoad>> proven_loads();

  // As those of Store. Keeps `per_model` of the model's records.
  Status put_failure(const core::FailureRecord& record, std::size_t per_model);
  Status lift_failure(const Uuid& id, const core::Lift& lift);
  Result<std::vector<core::FailureRecord>> failures(const std::string& model, std::size_t limit);
  Result<std::vector<core::FailureRecord>> standing_failures();

  // Keeps `most` records, those that changed last.
  Status put_measured(const MeasuredRecord& record, std::size_t most);
  Result<MeasuredRecords> measured();

  Status put_process(const ProcessRecord& record);
  Status remove_process(const std::string& instance);
  Result<std::vector<ProcessRecord>> processes();

  Status put_event(const Event& event);
  Result<EventPage> events(const EventFilter& filter, std::size_t limit);
  // 0: none is kept.
  Result<std::uint64_t> last_sequence();
  // Deletes events beyond the `kept` youngest and those before `oldest`; the last one always
  // stays, as the numbering goes on from it. Also bounds all loads together, and all
  // failures.
  Status prune(std::size_t kept, WallTime oldest);

  // Says in the file that it was closed well, unless damage was seen. Call it last.
  void close_well();
  // Makes a running statement fail. Any thread.
  void interrupt();

 private:
  class Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::store
