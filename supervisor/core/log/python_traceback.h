#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/core/failure.h"

namespace berth::core {

// The printed names that are fatal where nothing else is configured (L14).
std::vector<std::string> default_fatal_exceptions();

// Follows Python's tracebacks through a log, line by line (L13, D5 to D11). Owns copies of what it
// has to remember; bounded by the length of a line. One thread, lives as long as its parser.
// Nothing fails: a line that does not fit ends the traceback.
class TracebackReader {
 public:
  explicit TracebackReader(std::vector<std::string> fatal_exceptions);

  // What a line is to the tracebacks.
  enum class Step : std::uint8_t {
    kOther,     // nothing, or the end of one
    kBlank,     // blank: keeps everything as it is
    kInside,    // header or frame
    kTerminal,  // a terminal line straight after frames that is fatal: see terminal()
    kChained,   // a chaining sentence: the last terminal line was only a cause
  };

  // `line` in the form of D1.
  Step read(std::string_view line);
  // As a line that is longer than what is looked at (D2).
  void reset();
  // The line read last, whose message begins with `message`, tells of an error that its program
  // survived, if it is such a line (D10): the traceback straight after it gives no verdict.
  void note_survival(std::string_view message);

  struct Terminal {
    FailureClass failure_class = FailureClass::kPermanent;
    std::string_view exception;  // as printed
    std::string_view line;       // without the logger prefix of its traceback
  };
  // Of the line for which read() gave kTerminal; views of that line.
  [[nodiscard]] const Terminal& terminal() const { return terminal_; }

 private:
  enum class State : std::uint8_t {
    kNone,
    kHeader,   // a header was read; the next line says whether its text is a logger prefix
    kFrames,   // at least one frame was read
    kEnded,    // the terminal line was read
    kChained,  // a chaining sentence was read
  };

  std::optional<Step> step_behind_header(std::string_view line);
  std::optional<Step> step_inside(std::string_view line);
  std::optional<FailureClass> class_of(std::string_view name, std::string_view text) const;

  std::vector<std::string> fatal_;
  State state_ = State::kNone;
  // Of a header: what stands before it. Then the logger prefix of the traceback, maybe empty.
  std::string prefix_;
  bool survived_ = false;        // the traceback, and with it its chain
  bool survival_noted_ = false;  // the last line that was not blank said so
  Terminal terminal_;
};

}  // namespace berth::core
