#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "supervisor/core/log/log_verdict.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_watch.h"

namespace berth::process {

// Reads one log in bounded steps and judges what it reads. Owns its descriptors, a place in the
// file and the parser. One thread at a time; blocks on the file system. Nothing fails: what cannot
// be read is no verdict, and is tried again.
//
// The file that was opened first is read to the end, also when another one takes its name: the
// child goes on writing to the old one. It is cut when it grows too large (L10), and read on at the
// same bytes: what was not read yet is waited for, until the file is twice as large as it may be.
class LogJudge {
 public:
  struct Options {
    LogPlace place;
    std::vector<std::string> fatal_exceptions;
    bool use_inotify = true;  // false: as where the kernel grants none
    std::uint64_t cut_over = kLongestLiveLog;
    std::uint64_t cut_keeps = kKeptOfLiveLog;
  };

  explicit LogJudge(Options options);

  struct Step {
    std::optional<core::LogVerdict> verdict;
    bool more = false;                     // there was more to read than one step takes
    std::optional<SteadyTime> hold_until;  // when to look again, though nothing is written
    // Readable when something is written; of this judge, and the same at every step. Negative
    // where inotify cannot be had.
    int wait_fd = -1;
    LogCut cut;
    std::string cut_problem;  // why the log could not be cut, which is too long; mostly empty
  };
  // Reads what is there, at most kStepBytes. `clock` is only asked for the time.
  Step look(const Clock& clock);
  // As look(), when the process is gone: `more` until everything is read that was written by the
  // first of these calls, so that somebody who goes on writing holds up nobody. The last one speaks
  // the verdict of a line that is still held.
  Step finish(const Clock& clock);

  static constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20U;

 private:
  bool open();
  void watch();
  // Reads on. Gives the offset of the log's end.
  std::uint64_t read_on(std::size_t most, const Clock& clock, Step& step);
  void cut_if_long(Step& step);

  const Options options_;
  core::LogParser parser_;
  UniqueFd file_;
  UniqueFd inotify_;
  std::uint64_t offset_;               // of the log, as of the other numbers here
  std::optional<std::uint64_t> last_;  // where the log ended when its process was gone
};

}  // namespace berth::process
