#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/directory_watch.h"
#include "supervisor/process/async.h"
#include "supervisor/told_problems.h"

namespace berth {

// Keeps the present catalogue: scans on the pool when a model directory changes, every 30 s where
// nothing is reported, and when told to. Core strand only, but for snapshot(); lives as long as the
// program.
class CatalogKeeper {
 public:
  struct Parts {
    Clock& clock;
    EventSink& events;
    std::shared_ptr<const catalog::Config> config;
    process::RunBlocking run_blocking;
    process::OnReadable on_readable;
    std::function<void()> on_changed{};  // there is a new snapshot; may be empty
  };

  explicit CatalogKeeper(Parts parts);
  CatalogKeeper(const CatalogKeeper&) = delete;
  CatalogKeeper& operator=(const CatalogKeeper&) = delete;

  // Scans, and watches from then on; `done` after the first scan.
  void start(std::function<void()> done);
  // From the next scan on.
  void use(std::shared_ptr<const catalog::Config> config) { parts_.config = std::move(config); }
  // Scans soon; once more where a scan runs already.
  void rescan();

  // Never null. Any thread.
  [[nodiscard]] std::shared_ptr<const catalog::Catalog> snapshot() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }
  // Those of its models that the configuration pins.
  [[nodiscard]] std::vector<std::shared_ptr<const catalog::Model>> pinned() const;
  // What the last scan found wrong beside broken models.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  // What comes back from the pool.
  struct Found {
    catalog::ScanResult scan;
    std::optional<catalog::DirectoryWatch> watch;
    std::string watch_problem;
    Duration took{};
  };

  void scan();
  void take(Found found);
  void report(const Found& found);
  void wait_for_changes();
  void sweep();

  Parts parts_;
  mutable std::mutex mutex_;  // of the snapshot; held only to copy or change the pointer
  std::shared_ptr<const catalog::Catalog> snapshot_ = std::make_shared<const catalog::Catalog>();
  std::vector<std::string> problems_;
  ToldProblems told_;
  std::uint64_t stamp_ = 0;
  std::optional<catalog::DirectoryWatch> watch_;
  bool scanning_ = false;
  bool again_ = false;
  std::function<void()> first_done_;
  Timer readable_;
  Timer quiet_;
  Timer sweep_;
};

}  // namespace berth
