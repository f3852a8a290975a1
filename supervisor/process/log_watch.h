#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/log/log_verdict.h"

namespace berth::process {

// Where an instance's words begin in the log of its model.
struct LogPlace {
  std::string path;
  std::uint64_t start = 0;  // offset, in bytes (log_cut.h)
  std::string model{};
};

// The log of one load, watched from its launch until it is ready or has failed (L7, L11). Core
// strand only; dropping it ends the watch and drops every answer that is still out.
class LogWatch {
 public:
  // Nothing: the log says nothing of a load that cannot succeed.
  using OnEnd = std::function<void(std::optional<core::LogVerdict>)>;

  LogWatch() = default;
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;
  virtual ~LogWatch() = default;

  // The process is gone: reads what it wrote until then, and answers once, never from within this
  // call. From now on the watch gives its verdict here alone. Once.
  virtual void finish(OnEnd done) = 0;
};

// Watches the logs of loads. Core strand only.
class LogWatcher {
 public:
  using OnVerdict = std::function<void(core::LogVerdict)>;

  LogWatcher() = default;
  LogWatcher(const LogWatcher&) = delete;
  LogWatcher& operator=(const LogWatcher&) = delete;
  virtual ~LogWatcher() = default;

  // `fatal_exceptions`: L14. `on_verdict` is called at most once, never from within this call, and
  // may destroy the watch. A log that is missing or cannot be read gives no verdict. Never null.
  virtual std::unique_ptr<LogWatch> watch(LogPlace place, std::vector<std::string> fatal_exceptions,
                                          OnVerdict on_verdict) = 0;
};

}  // namespace berth::process
