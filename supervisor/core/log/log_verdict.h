#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "supervisor/core/failure.h"
#include "supervisor/core/log/python_traceback.h"

namespace berth::core {

// What a log says of a load: it cannot succeed any more.
struct LogVerdict {
  FailureClass failure_class = FailureClass::kUnclassified;  // not those of exits and times
  std::string exception;   // the Python name as printed; empty: no line of Python
  std::string reason;      // the carried text of the line (L16)
  std::uint64_t line = 0;  // which one: 1 is the first that was fed
};

// Reads a child's log from its start to ready and finds the first line that is fatal (L10 to L16,
// D1 to D18). Owns at most one line; one thread; no I/O and no clock: the caller brings both. Any
// bytes may come; nothing fails. How the bytes are cut into pieces makes no difference, as long as
// the time between them is shorter than a hold.
class LogParser {
 public:
  explicit LogParser(std::vector<std::string> fatal_exceptions = default_fatal_exceptions());

  // How long a log is quiet before the line that is held decides.
  static constexpr Duration kHold = std::chrono::milliseconds(100);
  // Blank lines and bytes without an end of line hold it no longer than this: a progress bar that
  // goes on turning must not keep a dead load alive.
  static constexpr Duration kLongestHold = std::chrono::seconds(1);

  // The next bytes, read at `now`. The first verdict, when they hold it; then, and for all that
  // comes after it, nothing.
  std::optional<LogVerdict> feed(std::string_view bytes, SteadyTime now);
  // Bytes are missing between what was fed and what comes next, at which a line begins.
  void skip();
  // When quiet() is due, where a line is held. The caller reads what is there before it calls.
  [[nodiscard]] std::optional<SteadyTime> hold_until() const;
  // The verdict of the line that is held, when it has been held long enough.
  std::optional<LogVerdict> quiet(SteadyTime now);
  // The process ended and all of its log was fed: the verdict of the line that is held. A last line
  // without its end does not count.
  std::optional<LogVerdict> end();

 private:
  struct Held {
    LogVerdict verdict;
    bool allocation = false;  // else a terminal line of Python
    SteadyTime since{};
  };

  void take_line(std::string_view raw, SteadyTime now);
  void take_overlong_line();
  void keep_part(std::string_view bytes);
  void read_native(std::string_view line, SteadyTime now);
  // Whether the line that is held is still held after the line that was read.
  bool continues_hold(std::string_view line, TracebackReader::Step step);
  void speak() { verdict_ = std::move(held_->verdict); }
  std::optional<LogVerdict> take_verdict();

  TracebackReader tracebacks_;
  std::string part_;       // of a line whose end has not come
  bool overlong_ = false;  // that line is too long to be looked at
  std::string scratch_;
  std::uint64_t lines_ = 0;
  std::optional<Held> held_;
  std::optional<LogVerdict> verdict_;
  bool done_ = false;
  SteadyTime last_bytes_{};
};

}  // namespace berth::core
