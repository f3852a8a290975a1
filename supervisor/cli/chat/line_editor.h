#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "supervisor/cli/chat/history_file.h"
#include "supervisor/cli/chat/line_source.h"
#include "supervisor/cli/environment.h"
#include "supervisor/cli/interrupts.h"

namespace berth::cli {

// Lines edited on the terminal, by libedit: history, search (Ctrl-R), a paste as one piece,
// Alt-Enter for a new line, and whatever the person's own ~/.editrc says. The terminal is in its
// normal mode whenever read() is not running. One thread; needs a terminal as standard input and
// signals that were taken over (Interrupts::take_over).
class LineEditor : public LineSource {
 public:
  // The prompt goes to the standard output, or where that is no terminal to the standard error.
  LineEditor(const Environment& environment, HistoryFile& history);
  ~LineEditor() override;

  Line read(const std::string& prompt) override;
  void remember(const std::string& entry) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::cli
