#include "supervisor/process/log_judge.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_input.h"

namespace berth::process {

LogJudge::LogJudge(Options options)
    : options_(std::move(options)),
      parser_(options_.fatal_exceptions),
      offset_(options_.place.start) {}

LogJudge::Step LogJudge::look(const Clock& clock) {
  Step step;
  if (!open()) return step;
  step.wait_fd = inotify_.get();
  // Before the file is read: what is written from here on wakes again.
  if (inotify_) drain_log_events(inotify_.get());
  step.more = read_until(size(), clock, step);
  if (step.verdict || step.more) return step;
  step.verdict = parser_.quiet(clock.now());
  step.hold_until = parser_.hold_until();
  return step;
}

LogJudge::Step LogJudge::finish(const Clock& clock) {
  Step step;
  if (open()) {
    if (!last_) last_ = size();
    step.more = read_until(*last_, clock, step);
  }
  if (!step.verdict && !step.more) step.verdict = parser_.end();
  return step;
}

bool LogJudge::open() {
  if (file_) return true;
  Result<UniqueFd> file = open_log_input(options_.place.path);
  if (!file) return false;
  file_ = std::move(*file);
  if (options_.use_inotify) watch();
  return true;
}

void LogJudge::watch() {
  inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return;
  // By its descriptor: the name may stand for another file by now.
  const std::string itself = "/proc/self/fd/" + std::to_string(file_.get());
  if (::inotify_add_watch(inotify_.get(), itself.c_str(), IN_MODIFY) < 0) inotify_.reset();
}

bool LogJudge::read_until(std::uint64_t end, const Clock& clock, Step& step) {
  offset_ = place_after_cut(file_.get(), offset_);
  if (offset_ >= end) return false;
  const auto bytes = read_log(file_.get(), offset_, std::min(end - offset_, kStepBytes));
  if (!bytes || bytes->empty()) return false;
  offset_ += bytes->size();
  step.verdict = parser_.feed(*bytes, clock.now());
  return offset_ < end;
}

std::uint64_t LogJudge::size() const {
  const auto bytes = log_size(file_.get());
  return bytes ? *bytes : 0;
}

}  // namespace berth::process
