#include "supervisor/key_keeper.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/keys/key_file.h"

namespace berth {
namespace {

// Where changes are not reported: network file systems, the target of a link.
constexpr Duration kSweepPeriod = std::chrono::seconds(3);

// Changes when the file does. 0: there is none.
std::uint64_t stamp_of(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return 0;
  std::uint64_t stamp = 1469598103934665603U;  // FNV-1a
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(info.st_ino), static_cast<std::uint64_t>(info.st_size),
        static_cast<std::uint64_t>(info.st_mtim.tv_sec),
        static_cast<std::uint64_t>(info.st_mtim.tv_nsec),
        static_cast<std::uint64_t>(info.st_ctim.tv_sec),
        static_cast<std::uint64_t>(info.st_ctim.tv_nsec)}) {
    stamp = (stamp ^ part) * 1099511628211U;
  }
  return stamp;
}

}  // namespace

void KeyKeeper::use(const catalog::AuthConfig& config, std::function<void()> done) {
  config_ = config;
  parts_.limits.set({config.key_requests_per_minute, config.key_concurrency});
  if (done) waiting_.push_back(std::move(done));
  read();
}

std::vector<std::string> KeyKeeper::problems() const {
  std::vector<std::string> problems;
  if (!problem_.empty()) problems.push_back(problem_);
  if (!warning_.empty()) problems.push_back(warning_);
  return problems;
}

KeyKeeper::Found KeyKeeper::look(const std::string& file) {
  Found found;
  found.file = file;
  if (file.empty()) return found;
  // The watch comes first, so that what changes while it is read is seen.
  Result<catalog::DirectoryWatch> watch = catalog::DirectoryWatch::open_file(file);
  if (watch) found.watch.emplace(*std::move(watch));
  found.stamp = stamp_of(file);
  Result<keys::KeyFile> read = keys::read_key_file(file);
  if (!read) {
    found.problem = read.error().message;
    found.gone = read.error().reason == Reason::kNotFound;
    if (found.gone) found.problem += " `berth keys add NAME` makes it.";
    // What kept it from being read may pass without a change of the file, such as too many open
    // files: the sweep tries again until it can be used.
    found.stamp = 0;
    return found;
  }
  found.keys = read->list.keys();
  found.warning = std::move(read->warning);
  return found;
}

void KeyKeeper::read() {
  if (reading_) {
    again_ = true;
    return;
  }
  reading_ = true;
  parts_.run_blocking([this, file = config_.keys_file, &clock = parts_.clock] {
    auto found = std::make_shared<Found>(look(file));
    clock.post([this, found] { take(std::move(*found)); });
  });
}

void KeyKeeper::take(Found found) {
  reading_ = false;
  report(found);
  // Keys of a file that is not the named one any more may be those that somebody revoked so.
  if (found.problem.empty() || found.gone || found.file != keys_from_) {
    keys_ = std::move(found.keys);
    keys_from_ = found.file;
  }
  problem_ = std::move(found.problem);
  warning_ = std::move(found.warning);
  stamp_ = found.stamp;
  parts_.authenticator.use(
      {.keys = keys_, .uses_keys = !config_.keys_file.empty(), .anonymous = config_.anonymous});
  if (parts_.on_changed) parts_.on_changed();
  readable_.reset();  // before the descriptor that it waits on goes
  watch_ = std::move(found.watch);
  wait_for_changes();
  if (std::exchange(again_, false)) return read();
  sweep();
  for (const auto& done : std::exchange(waiting_, {})) done();
}

// Only news.
void KeyKeeper::report(const Found& found) {
  if (found.file.empty()) return;
  if (!found.problem.empty()) {
    if (found.problem != problem_) {
      parts_.events.emit_typed(events::KeysRejected{.file = found.file, .problem = found.problem});
    }
    return;
  }
  if (!found.warning.empty() && found.warning != warning_) {
    parts_.events.emit_typed(events::ServerDegraded{.part = "keys", .problem = found.warning});
  }
  if (keys_from_ == found.file && found.keys == keys_ && problem_.empty()) return;
  const auto admins = std::ranges::count(found.keys, keys::KeyRole::kAdmin, &keys::Key::role);
  parts_.events.emit_typed(
      events::KeysReloaded{.keys = static_cast<std::int64_t>(found.keys.size()),
                           .admins = static_cast<std::int64_t>(admins),
                           .file = found.file});
}

void KeyKeeper::wait_for_changes() {
  if (!watch_) return;
  readable_.reset();  // one wait at a time: a descriptor can be lent only once
  readable_ = parts_.on_readable(watch_->fd(), [this] {
    if (watch_->drain()) return read();  // which makes a new watch
    wait_for_changes();
  });
}

void KeyKeeper::sweep() {
  sweep_.reset();
  if (config_.keys_file.empty()) return;
  sweep_ = parts_.clock.sleep_for(kSweepPeriod, [this] {
    parts_.run_blocking([this, file = config_.keys_file, &clock = parts_.clock] {
      const std::uint64_t stamp = stamp_of(file);
      clock.post([this, file, stamp] {
        if (reading_) return;  // which sweeps again
        if (file != config_.keys_file || stamp != stamp_) return read();
        sweep();
      });
    });
  });
}

}  // namespace berth
