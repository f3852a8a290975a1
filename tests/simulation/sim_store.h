#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/store/store.h"
#include "tests/simulation/sim_clock.h"

namespace berth::sim {

// A store in memory; answers come as posts of its own thread.
class SimStore : public store::Store {
 public:
  explicit SimStore(SimClock& clock) : clock_(clock) {}

  void put_load(store::LoadRecord record) override;
  void loads(std::string model, std::size_t limit,
             std::function<void(Result<std::vector<store::LoadRecord>>)> done) override;
  void proven_loads(std::function<void(Result<std::vector<store::ProvenLoad>>)> done) override;
  void put_failure(core::FailureRecord record) override;
  void lift_failure(Uuid id, core::Lift lift) override;
  void failures(std::string model, std::size_t limit,
                std::function<void(Result<std::vector<core::FailureRecord>>)> done) override;
  void standing_failures(
      std::function<void(Result<std::vector<core::FailureRecord>>)> done) override;
  void put_measured(store::MeasuredRecord record) override;
  void measured(std::function<void(Result<store::MeasuredRecords>)> done) override;
  void put_process(store::ProcessRecord record) override;
  void remove_process(std::string instance) override;
  void processes(std::function<void(Result<std::vector<store::ProcessRecord>>)> done) override;
  void put_event(Event event) override;
  void events(store::EventFilter filter, std::size_t limit,
              std::function<void(Result<store::EventPage>)> done) override;

  // For tests.
  [[nodiscard]] const std::map<std::string, store::LoadRecord>& load_records() const {
    return loads_;  // by id
  }
  [[nodiscard]] const std::map<std::string, store::ProcessRecord>& process_records() const {
    return processes_;  // by instance
  }
  [[nodiscard]] const std::map<Uuid, core::FailureRecord>& failure_records() const {
    return failures_;
  }
  [[nodiscard]] const std::map<std::string, store::MeasuredRecord>& measured_records() const {
    return measured_;  // by key
  }
  std::size_t unreadable_measured = 0;
  int measured_writes = 0;
  bool fail_reads = false;  // of failures that stand, and of measurements: the file cannot be read
  // Of failures and loads that were: what it says; empty: they can be read.
  std::string fail_history;
  int event_asks = 0;
  // The oldest events go, but for so many.
  void prune_events(std::size_t kept) {
    while (events_.size() > kept) events_.erase(events_.begin());
  }
  // How long what is written about failures waits for the disk; the order of the calls is kept.
  Duration slow_failures{};
  // Called with each record that is given, before it is kept.
  std::function<void(const core::FailureRecord&)> on_failure;

 private:
  static constexpr std::size_t kFailuresPerModel = 200;

  void write(std::function<void()> work);
  void write_all();
  void keep(core::FailureRecord record);

  SimClock& clock_;
  std::map<std::string, store::LoadRecord> loads_;
  std::map<std::string, store::ProcessRecord> processes_;
  std::map<Uuid, core::FailureRecord> failures_;
  std::map<std::string, store::MeasuredRecord> measured_;
  std::map<std::uint64_t, store::StoredEvent> events_;  // by sequence
  std::vector<std::function<void()>> unwritten_;
  Timer disk_;
};

}  // namespace berth::sim
