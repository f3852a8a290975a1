#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "supervisor/cli/environment.h"

namespace berth::cli {

// What a person typed before, kept in a file over the programs' lives: one entry a line, newlines
// and backslashes escaped, the newest last. Readable by its owner alone (mode 0600); several
// programs may append to it at once. Never more than kMostEntries and kMostBytes after it was read.
// Where the file cannot be used, nothing is kept and problem() says why.
class HistoryFile {
 public:
  static constexpr std::size_t kMostEntries = 1000;
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20U;
  // Longer entries are not kept.
  static constexpr std::size_t kMostEntryBytes = std::size_t{16} << 10U;

  // Reads the file; makes its folder (0700) where it is missing. Empty path: nothing is kept.
  explicit HistoryFile(std::string path);

  [[nodiscard]] const std::vector<std::string>& entries() const { return entries_; }
  // Appends to the file, but for what is blank, too long or the same as the entry before.
  void add(const std::string& entry);
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  void read();
  void rewrite();

  std::string path_;
  std::vector<std::string> entries_;
  std::string problem_;
};

// $XDG_STATE_HOME/berth/history, else ~/.local/state/berth/history; empty where there is no home.
std::string history_path(const Environment& environment);

}  // namespace berth::cli
