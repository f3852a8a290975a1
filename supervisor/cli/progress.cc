#include "supervisor/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "supervisor/cli/format/text.h"

namespace berth::cli {
namespace {

constexpr std::size_t kUnknownColumns = 80;
constexpr std::size_t kMostBar = 32;
constexpr std::size_t kLeastBar = 8;

int percent(double fraction) {
  return static_cast<int>(std::floor(std::clamp(fraction, 0.0, 1.0) * 100));
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 20);
  if (!state.fraction) return fit(state.what, columns);
  const int done = percent(*state.fraction);
  std::string tail = " " +
                     std::string(done < 10    ? "  "
                                 : done < 100 ? " "
                                              : "") +
                     std::to_string(done) + " %";
  if (state.eta) tail += "  " + format_seconds(*state.eta) + " left";
  // Text first, then the tail, then as much bar as there is room for.
  const std::size_t tail_width = display_width(tail);
  const std::string text =
      fit(state.what, columns > tail_width + 1 ? columns - tail_width - 1 : columns);
  const std::size_t used = display_width(text) + tail_width;
  if (used > columns) return fit(state.what, columns);
  std::string line = text;
  if (used + kLeastBar + 3 <= columns) {
    const std::size_t bar = std::min(kMostBar, columns - used - 3);
    const std::size_t filled = bar * static_cast<std::size_t>(done) / 100;
    line += " [" + std::string(filled, '#') + std::string(bar - filled, '.') + "]";
  }
  return line + tail;
}

Progress::Progress(const Environment& environment, bool verbose)
    : environment_(environment),
      redraws_(environment.redrawable(environment.err)),
      verbose_(verbose) {}

Progress::~Progress() {
  clear();
}

void Progress::show(ProgressState state) {
  if (!redraws_ && !verbose_) return;
  if (!since_) since_ = environment_.now();
  if (!state.eta && state.fraction && *state.fraction > 0.05 && *state.fraction < 1) {
    // The daemon does not say: go on as it went so far.
    const auto elapsed =
        std::chrono::duration_cast<std::chrono::milliseconds>(environment_.now() - *since_);
    if (elapsed > std::chrono::seconds(2)) {
      const double left = static_cast<double>(elapsed.count()) * (1 / *state.fraction - 1);
      state.eta = std::chrono::seconds(std::llround(left / 1000));
    }
  }
  if (redraws_) {
    const int columns = environment_.columns();
    // The last column stays free: some terminals wrap when it is written.
    const std::string line = progress_line(
        state, columns > 1 ? static_cast<std::size_t>(columns) - 1 : kUnknownColumns - 1);
    if (line == shown_) return;
    environment_.err.write("\r" + line + "\x1b[K");
    shown_ = line;
    return;
  }
  const int tenth = state.fraction ? percent(*state.fraction) / 10 : -1;
  if (state.what == last_what_ && tenth == last_tenth_) return;
  last_what_ = state.what;
  last_tenth_ = tenth;
  std::string line = state.what;
  if (state.fraction) line += " " + std::to_string(percent(*state.fraction)) + " %";
  environment_.err.write(line + "\n");
}

void Progress::clear() {
  if (shown_.empty()) return;
  environment_.err.write("\r\x1b[K");
  shown_.clear();
}

}  // namespace berth::cli
