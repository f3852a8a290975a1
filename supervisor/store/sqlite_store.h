#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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

struct StoreOptions {
  std::string path;  // STATE_DIR/state.db; the directory exists
  std::size_t queue = 4096;
  std::size_t loads_per_model = 200;
  std::size_t failures_per_model = 200;
  std::size_t waiting = 1024;  // writes about failures: beyond `queue`
  std::size_t events_kept = 50'000;
  std::chrono::hours events_age{24 * 90};
  // After a write that failed; doubles with each further one, up to twelve times this.
  Duration retry_after = std::chrono::seconds(5);
  Duration close_wait = std::chrono::seconds(5);
  // Told on the core strand that records are not kept, and when they are again. May be empty.
  std::function<void(events::ServerDegraded)> on_degraded;
};

// The Store on SQLite. Owns the file and one thread, on which everything but open() works; a batch
// of writes is one transaction. What a process wrote before it was killed is there at the next
// start; a power failure may cost the last moments, never the file.
//
// What the file does not take (a full disk, another program that holds it) waits in memory and is
// tried again by a timer, ever more rarely: StoreOptions::queue records, of which the oldest are
// given up first, and apart from them StoreOptions::waiting writes about failures, which so are
// lost last. What the file refuses for good is given up alone. on_degraded is told when records
// begin to wait or are lost, and again with the number of the lost when all is written; lost
// failures are told apart. Where the disk is full at the start, reads find what the file held then,
// or an empty database if there was none, until it can be written. Reads answer kStoreBusy when the
// queue is full, kStoreUnavailable when the file fails.
//
// All calls may come from any thread. `clock` must outlive it; results that come after its end are
// still posted.
class RealStore : public Store {
 public:
  // Blocks on the disk. Errors: those of Database::open.
  static Result<std::unique_ptr<RealStore>> open(StoreOptions options, Clock& clock);
  RealStore(const RealStore&) = delete;
  RealStore& operator=(const RealStore&) = delete;
  ~RealStore() override;

  // The highest event number that was kept when the store was opened; 0: none.
  [[nodiscard]] std::uint64_t last_sequence() const { return last_sequence_; }

  void put_load(LoadRecord record) override;
  void loads(std::string model, std::size_t limit,
             std::function<void(Result<std::vector<LoadRecord>>)> done) override;
  void proven_loads(std::function<void(Result<std::vector<ProvenLoad>>)> done) override;
  void put_failure(core::FailureRecord record) override;
  void lift_failure(Uuid id, core::Lift lift) override;
  void failures(std::string model, std::size_t limit,
                std::function<void(Result<std::vector<core::FailureRecord>>)> done) override;
  void standing_failures(
      std::function<void(Result<std::vector<core::FailureRecord>>)> done) override;
  void put_measured(MeasuredRecord record) override;
  void measured(std::function<void(Result<MeasuredRecords>)> done) override;
  void put_process(ProcessRecord record) override;
  void remove_process(std::string instance) override;
  void processes(std::function<void(Result<std::vector<ProcessRecord>>)> done) override;
  void put_event(Event event) override;
  void events(EventFilter filter, std::size_t limit,
              std::function<void(Result<EventPage>)> done) override;

 private:
  class Worker;
  RealStore(std::unique_ptr<Worker> worker, std::uint64_t last_sequence);

  std::unique_ptr<Worker> worker_;
  std::uint64_t last_sequence_;
};

}  // namespace berth::store
