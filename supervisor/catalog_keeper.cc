#include "supervisor/catalog_keeper.h"

#include <chrono>
#include <utility>

#include "common/durations.h"

namespace berth {
namespace {

constexpr Duration kSweepPeriod = std::chrono::seconds(30);  // L23

}  // namespace

CatalogKeeper::CatalogKeeper(Parts parts)
    : parts_(std::move(parts)), told_(parts_.events, "catalog") {}

void CatalogKeeper::start(std::function<void()> done) {
  first_done_ = std::move(done);
  scan();
}

void CatalogKeeper::rescan() {
  quiet_.reset();
  if (scanning_) {
    again_ = true;
  } else {
    scan();
  }
}

std::vector<std::shared_ptr<const catalog::Model>> CatalogKeeper::pinned() const {
  std::vector<std::shared_ptr<const catalog::Model>> models = snapshot()->models();
  std::erase_if(models, [](const auto& model) { return !model->settings.pin; });
  return models;
}

void CatalogKeeper::scan() {
  scanning_ = true;
  parts_.run_blocking([this, config = parts_.config, previous = snapshot_, &clock = parts_.clock] {
    const SteadyTime began = clock.now();
    Found found;
    // The watch comes first, so that what changes during the scan is seen.
    Result<catalog::DirectoryWatch> watch = catalog::DirectoryWatch::open(*config);
    if (watch) {
      found.watch.emplace(*std::move(watch));
    } else {
      found.watch_problem = watch.error().message;
    }
    found.scan = catalog::scan(*config, previous.get());
    found.took = clock.now() - began;
    clock.post(
        [this, found = std::make_shared<Found>(std::move(found))] { take(std::move(*found)); });
  });
}

void CatalogKeeper::take(Found found) {
  scanning_ = false;
  report(found);
  auto now = std::make_shared<const catalog::Catalog>(std::move(found.scan.catalog));
  {
    const std::lock_guard lock(mutex_);
    snapshot_.swap(now);
  }
  if (parts_.on_changed) parts_.on_changed();
  stamp_ = found.scan.stamp;
  problems_ = std::move(found.scan.problems);
  readable_.reset();  // before the descriptor that it waits on goes
  watch_ = std::move(found.watch);
  wait_for_changes();
  sweep();
  if (std::exchange(again_, false)) scan();
  if (auto done = std::exchange(first_done_, nullptr)) done();
}

void CatalogKeeper::report(const Found& found) {
  std::int64_t broken = 0;
  for (const auto& model : found.scan.catalog.models()) {
    if (model->problem.empty()) continue;
    ++broken;
    const auto before = snapshot_->find(model->name);
    // Only news: a broken file is not told again with every scan.
    if (before && (*before)->problem == model->problem) continue;
    parts_.events.emit_typed(events::ModelBroken{.model = model->name, .problem = model->problem});
  }
  std::vector<std::string> problems = found.scan.problems;
  if (!found.watch_problem.empty()) problems.push_back(found.watch_problem);
  told_.tell(problems);
  parts_.events.emit_typed(events::CatalogScanned{
      .models = static_cast<std::int64_t>(found.scan.catalog.models().size()),
      .broken = broken,
      .took_ms = whole_milliseconds(found.took)});
}

void CatalogKeeper::wait_for_changes() {
  if (!watch_) return;
  readable_.reset();  // one wait at a time: a descriptor can be lent only once
  readable_ = parts_.on_readable(watch_->fd(), [this] {
    // A copy in progress reports many changes: scan when it has been quiet for a while.
    if (watch_->drain()) {
      quiet_ = parts_.clock.sleep_for(catalog::DirectoryWatch::kQuietTime, [this] { rescan(); });
    }
    wait_for_changes();
  });
}

void CatalogKeeper::sweep() {
  sweep_ = parts_.clock.sleep_for(kSweepPeriod, [this] {
    parts_.run_blocking(
        [this, config = parts_.config, snapshot = snapshot_, &clock = parts_.clock] {
          const std::uint64_t stamp = catalog::stat_stamp(*config, *snapshot);
          clock.post([this, stamp, snapshot] {
            if (snapshot != snapshot_) return;  // a scan came in between
            if (stamp != stamp_) return rescan();
            sweep();
          });
        });
  });
}

}  // namespace berth
