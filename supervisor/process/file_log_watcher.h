#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "supervisor/process/async.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_watch.h"

namespace berth::process {

// Watches real files: through inotify, or with a look every 500 ms where that cannot be had. What
// blocks, and the judging of what was read, runs on the pool, a bounded step at a time, so that a
// log that is flooded holds up neither the core strand nor other work of the pool. Core strand;
// clock, pool and strand outlive every watch.
class FileLogWatcher final : public LogWatcher {
 public:
  struct Parts {
    Clock& clock;
    RunBlocking run_blocking;
    OnReadable on_readable;
    bool use_inotify = true;  // false: as where the kernel grants none
    // A log was cut that was `size_before` bytes long (L10). On the core strand; may be null.
    std::function<void(const std::string& model, std::uint64_t size_before)> on_cut{};
    // A log is too long and cannot be cut, at every step that found it so. As on_cut.
    std::function<void(const std::string& model, const std::string& problem)> on_uncut{};
    std::uint64_t cut_over = kLongestLiveLog;
    std::uint64_t cut_keeps = kKeptOfLiveLog;
  };

  explicit FileLogWatcher(Parts parts);

  std::unique_ptr<LogWatch> watch(LogPlace place, std::vector<std::string> fatal_exceptions,
                                  OnVerdict on_verdict) override;

  // Whether a watch still reads that file: from its start until it has a verdict, was answered or
  // is dropped.
  [[nodiscard]] bool reads(const std::string& path) const;

 private:
  class Watch;
  using Paths = std::multiset<std::string>;

  const Parts parts_;
  const std::shared_ptr<Paths> read_;  // by the watches, which may outlive this
};

}  // namespace berth::process
