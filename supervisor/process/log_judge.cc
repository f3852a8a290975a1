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
  step.more = offset_ < read_on(kStepBytes, clock, step);
  cut_if_long(step);
  if (step.verdict || step.more) return step;
  step.verdict = parser_.quiet(clock.now());
  step.hold_until = parser_.hold_until();
  return step;
}

LogJudge::Step LogJudge::finish(const Clock& clock) {
  Step step;
  if (open()) {
    if (!last_) last_ = log_end(file_.get());
    const std::uint64_t left = *last_ > offset_ ? *last_ - offset_ : 0;
    if (left > 0) last_ = std::min(*last_, read_on(std::min(left, kStepBytes), clock, step));
    step.more = offset_ < *last_;
    cut_if_long(step);
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

std::uint64_t LogJudge::read_on(std::size_t most, const Clock& clock, Step& step) {
  const auto part = read_log_part(file_.get(), offset_, most);
  if (!part) return offset_;
  if (part->offset != offset_) parser_.skip();
  offset_ = part->offset + part->bytes.size();
  if (!part->bytes.empty()) step.verdict = parser_.feed(part->bytes, clock.now());
  return part->bytes.empty() ? offset_ : part->end;
}

void LogJudge::cut_if_long(Step& step) {
  const bool behind = step.more && !step.verdict;
  auto cut = trim_live(file_.get(), behind ? 2 * options_.cut_over : options_.cut_over,
                       options_.cut_keeps);
  if (cut) {
    step.cut = *cut;
  } else {
    step.cut_problem = std::move(cut).error().message;
  }
}

}  // namespace berth::process
