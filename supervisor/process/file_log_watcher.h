#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
    std::uint64_t cut_over = kLongestLiveLog;
    std::uint64_t cut_keeps = kKeptOfLiveLog;
  };

  explicit FileLogWatcher(Parts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<LogWatch> watch(LogPlace place, std::vector<std::string> fatal_exceptions,
                                  OnVerdict on_verdict) override;

 private:
  class Watch;

  const Parts parts_;
};

}  // namespace berth::process
