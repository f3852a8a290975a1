#include "supervisor/core/log/log_verdict.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "supervisor/core/log/line_cleaner.h"
#include "supervisor/core/log/log_prefix.h"
#include "supervisor/core/log/native_lines.h"
#include "supervisor/core/redact.h"

namespace berth::core {

LogParser::LogParser(std::vector<std::string> fatal_exceptions)
    : tracebacks_(std::move(fatal_exceptions)) {}

std::optional<LogVerdict> LogParser::feed(std::string_view bytes, SteadyTime now) {
  if (!bytes.empty()) last_bytes_ = now;
  while (!done_ && !verdict_) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      keep_part(bytes);
      break;
    }
    const std::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (part_.empty() && !overlong_ && piece.size() <= kLongestLogLine) {
      take_line(piece, now);
      continue;
    }
    keep_part(piece);
    if (overlong_) {
      take_overlong_line();
    } else {
      take_line(part_, now);
    }
    part_.clear();
    overlong_ = false;
  }
  return take_verdict();
}

void LogParser::skip() {
  part_.clear();
  overlong_ = false;
  tracebacks_.reset();
}

std::optional<SteadyTime> LogParser::hold_until() const {
  if (!held_ || done_) return std::nullopt;
  return std::min(last_bytes_ + kHold, held_->since + kLongestHold);
}

std::optional<LogVerdict> LogParser::quiet(SteadyTime now) {
  const auto due = hold_until();
  if (due && now >= *due) speak();
  return take_verdict();
}

std::optional<LogVerdict> LogParser::end() {
  if (held_ && !done_) speak();
  return take_verdict();
}

void LogParser::keep_part(std::string_view bytes) {
  if (overlong_) return;
  if (part_.size() + bytes.size() > kLongestLogLine) {
    overlong_ = true;
    part_.clear();
    return;
  }
  part_ += bytes;
}

void LogParser::take_overlong_line() {
  ++lines_;
  tracebacks_.reset();
  if (held_) speak();
}

void LogParser::take_line(std::string_view raw, SteadyTime now) {
  ++lines_;
  const std::string_view line = clean_line(raw, scratch_);
  const TracebackReader::Step step = tracebacks_.read(line);
  if (held_) {
    if (!continues_hold(line, step)) speak();
    return;
  }
  switch (step) {
    case TracebackReader::Step::kTerminal: {
      const TracebackReader::Terminal& terminal = tracebacks_.terminal();
      held_ = Held{{terminal.failure_class, std::string(terminal.exception),
                    carried_text(terminal.line), lines_},
                   false,
                   now};
      break;
    }
    case TracebackReader::Step::kOther:
      read_native(line, now);
      break;
    case TracebackReader::Step::kBlank:
    case TracebackReader::Step::kInside:
    case TracebackReader::Step::kChained:
      break;
  }
}

bool LogParser::continues_hold(std::string_view line, TracebackReader::Step step) {
  if (step == TracebackReader::Step::kBlank) return true;
  if (held_->allocation) {
    if (!continues_allocation(line)) return false;
    if (retries_allocation(line)) held_.reset();
    return true;
  }
  if (step != TracebackReader::Step::kChained) return false;
  held_.reset();
  return true;
}

void LogParser::read_native(std::string_view line, SteadyTime now) {
  if (is_indented(line)) return;
  const std::string_view message = line.substr(logger_prefix_length(line));
  tracebacks_.note_survival(message);
  const auto native = match_native_line(message);
  if (!native) return;
  LogVerdict verdict{native->failure_class, {}, carried_text(message), lines_};
  if (native->held) {
    held_ = Held{std::move(verdict), true, now};
  } else {
    verdict_ = std::move(verdict);
  }
}

std::optional<LogVerdict> LogParser::take_verdict() {
  if (done_ || !verdict_) return std::nullopt;
  done_ = true;
  held_.reset();
  part_ = {};
  return std::move(verdict_);
}

}  // namespace berth::core
