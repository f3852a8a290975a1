#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/clock.h"
#include "common/event.h"
#include "common/result.h"

namespace berth {

enum class LogFormat : std::uint8_t { kLogfmt, kJson };

struct LogOptions {
  LogFormat format = LogFormat::kLogfmt;
  Level minimum = Level::kInfo;    // events below it are not written
  int fd = 1;                      // not owned; must stay open until close() has returned
  std::size_t queue_lines = 2048;  // waiting at most; then the oldest are dropped
};

// The program's log: writes events as lines to a file descriptor, or to the journal where systemd
// has connected the descriptor to it and the format is logfmt. Lines go through a bounded queue to
// a thread of its own, so that a full disk, a slow terminal or a pipe that nobody reads never stops
// the caller; what could not be written is counted, and said in the log when it can be again
// (log.dropped). Lives as long as the program.
class LogWriter {
 public:
  // How long close() waits by itself for lines that nobody takes.
  static constexpr Duration kFlushBound = std::chrono::seconds(2);

  // Starts the thread. Errors: kInternal, where there is no thread to be had.
  static Result<std::unique_ptr<LogWriter>> start(const LogOptions& options);

  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();  // close()

  // Any thread; never blocks on I/O. An event without a time gets the present one.
  void write(const Event& event);

  // Writes what waits, for at most `bound` (and a second more where the system does not even let
  // go of the write), then drops the rest. Later events are dropped. Any thread, once.
  void close(Duration bound = kFlushBound);

  // Lines that were not written, so far. Any thread.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  class Core;
  explicit LogWriter(std::unique_ptr<Core> core);

  std::unique_ptr<Core> core_;
};

}  // namespace berth
