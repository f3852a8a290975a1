#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"
#include "supervisor/process/async.h"
#include "supervisor/process/leftovers.h"
#include "supervisor/store/store.h"

namespace berth {

// Ends what an earlier run left behind (L4): what the store recorded, and what is found without
// it. A store that does not answer holds the start up for kRecordsWait only; what it says later is
// still ended, unless it is of this run. Core strand only; one use; lives as long as the program.
class LeftoverCleaner {
 public:
  static constexpr Duration kRecordsWait = std::chrono::seconds(5);

  struct Parts {
    Clock& clock;
    EventSink& events;
    store::Store& store;
    process::RunBlocking run_blocking;
    std::string boot_id;
    std::uint64_t start_ticks = 0;  // of this process; 0: not known, and what comes late lives on
    // Both run on the pool and block for a few seconds at most. The second one ends whatever is
    // found without records: only before anything was launched.
    std::function<std::vector<process::LeftoverEnd>(const std::vector<process::Leftover>&)> kill;
    std::function<std::vector<process::MarkedLeftover>()> kill_marked;
  };

  explicit LeftoverCleaner(Parts parts) : parts_(std::move(parts)) {}
  LeftoverCleaner(const LeftoverCleaner&) = delete;
  LeftoverCleaner& operator=(const LeftoverCleaner&) = delete;
  ~LeftoverCleaner() = default;

  // `done` when all are gone or stuck, after which the first worker may be launched. Once.
  void start(std::function<void()> done);

 private:
  using Records = std::vector<store::ProcessRecord>;

  void on_records(Result<Records> records);
  void clean(Records records, bool late);
  void tell(const Records& records, const std::vector<process::LeftoverEnd>& ends,
            const std::vector<process::MarkedLeftover>& marked);
  [[nodiscard]] bool of_this_run(const store::ProcessRecord& record) const;

  Parts parts_;
  std::function<void()> done_;
  bool began_ = false;  // with or without records
  Timer deadline_;
  // The store's answer may come after its end.
  const std::shared_ptr<LeftoverCleaner*> self_ = std::make_shared<LeftoverCleaner*>(this);
};

}  // namespace berth
