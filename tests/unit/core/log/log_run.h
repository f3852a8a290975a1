#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/log/log_verdict.h"

namespace berth::core {

inline std::ostream& operator<<(std::ostream& out, const LogVerdict& verdict) {
  return out << failure_class_name(verdict.failure_class) << " [" << verdict.exception << "] line "
             << verdict.line << ": " << verdict.reason;
}

inline bool operator==(const LogVerdict& a, const LogVerdict& b) {
  return a.failure_class == b.failure_class && a.exception == b.exception && a.reason == b.reason &&
         a.line == b.line;
}

namespace test {

// Longer than any hold.
inline constexpr Duration kPause = 2 * LogParser::kLongestHold;

// A parser with a clock that moves only at pauses.
class LogRun {
 public:
  explicit LogRun(std::vector<std::string> fatal = default_fatal_exceptions())
      : parser_(std::move(fatal)) {}

  void write(std::string_view bytes) { keep(parser_.feed(bytes, now_)); }
  // Nothing is written for `time`.
  void wait(Duration time) {
    now_ += time;
    keep(parser_.quiet(now_));
  }
  void end() { keep(parser_.end()); }

  [[nodiscard]] const std::optional<LogVerdict>& verdict() const { return verdict_; }
  LogParser& parser() { return parser_; }
  [[nodiscard]] SteadyTime now() const { return now_; }
  // How often the parser spoke.
  int verdicts = 0;

 private:
  void keep(std::optional<LogVerdict> verdict) {
    if (!verdict) return;
    ++verdicts;
    verdict_ = std::move(verdict);
  }

  LogParser parser_;
  SteadyTime now_{};
  std::optional<LogVerdict> verdict_;
};

// The verdict of a whole log, at the end of its process.
inline std::optional<LogVerdict> verdict_of(
    std::string_view log, std::vector<std::string> fatal = default_fatal_exceptions()) {
  LogRun run(std::move(fatal));
  run.write(log);
  run.end();
  return run.verdict();
}

// "permanent ValueError: bad", "crash free(): invalid pointer"; "" where there is none.
inline std::string said(std::string_view log,
                        std::vector<std::string> fatal = default_fatal_exceptions()) {
  const auto verdict = verdict_of(log, std::move(fatal));
  if (!verdict) return {};
  return std::string(failure_class_name(verdict->failure_class)) + " " + verdict->reason;
}

}  // namespace test
}  // namespace berth::core
