#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/cli/environment.h"

namespace berth::cli {

// How far something is.
struct ProgressState {
  std::string what;                              // "demo: weights"
  std::optional<double> fraction;                // 0 to 1; absent: not known
  std::optional<std::chrono::milliseconds> eta;  // absent: not known
};

// One line of at most `columns` (at least 20): text, bar, percent and the time left.
std::string progress_line(const ProgressState& state, std::size_t columns);

// A line on the standard error that is redrawn; only where that is a terminal. Elsewhere nothing,
// or with `verbose` a line at every new `what` and every tenth of it. One thread. Destroying it
// takes the line away.
class Progress {
 public:
  Progress(const Environment& environment, bool verbose);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void show(ProgressState state);
  // Takes the line away; show() brings it back.
  void clear();

 private:
  const Environment& environment_;
  bool redraws_;
  bool verbose_;
  std::string shown_;
  std::string last_what_;
  int last_tenth_ = -1;
  std::optional<SteadyTime> since_;
};

}  // namespace berth::cli
