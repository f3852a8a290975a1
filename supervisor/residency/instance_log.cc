// What an instance learns from its log while it loads (L7, L11 to L16).

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/exit_status.h"
#include "supervisor/core/instance_machine.h"
#include "supervisor/core/log/log_verdict.h"
#include "supervisor/process/log_watch.h"
#include "supervisor/residency/instance.h"

namespace berth::residency {

void Instance::watch_log(std::optional<process::LogPlace> place) {
  if (environment_.log_watcher == nullptr || !place) return;
  if (machine_.state() != core::InstanceState::kStarting || !machine_.has_process()) return;
  log_watch_ = environment_.log_watcher->watch(
      *std::move(place), model_->settings.fatal_exceptions,
      [this](const core::LogVerdict& verdict) { judge_log(verdict); });
}

void Instance::judge_log(const core::LogVerdict& verdict) {
  feed(core::LogJudged{verdict.failure_class, verdict.reason});
}

// After an exit the rest of the log is judged first: the class of a line wins over the bare status
// (L21).
void Instance::collect_log() {
  if (!log_watch_ || machine_.has_process()) {
    ask_kernel();
    return;
  }
  log_watch_->finish([this](const std::optional<core::LogVerdict>& verdict) {
    const auto keep = shared_from_this();
    if (verdict) judge_log(*verdict);
    ask_kernel();
  });
}

// An end that was not ours may be the kernel's work, and only it can say so (L9): a SIGKILL, and
// any exit of a program that ends when the kernel has killed a process of it.
void Instance::ask_kernel() {
  const std::optional<core::ExitStatus> exit = machine_.own_exit();
  if (exit && environment_.oom_counted && environment_.oom_counted(pid_)) {
    environment_.clock.post([find = find_, id = machine_.id()] {
      const auto self = find(id);
      if (!self) return;
      self->feed(core::OomProven{});
      self->fetch_log_tail();
    });
    return;
  }
  const auto* signalled = exit ? std::get_if<core::Signalled>(&*exit) : nullptr;
  if (!environment_.oom_killed || signalled == nullptr || signalled->signal != SIGKILL) {
    fetch_log_tail();
    return;
  }
  environment_.oom_killed(pid_, [find = find_, id = machine_.id()](bool proven) {
    const auto self = find(id);
    if (!self) return;
    if (proven) self->feed(core::OomProven{});
    self->fetch_log_tail();
  });
}

void Instance::end_log_watch() {
  using State = core::InstanceState;
  const State state = machine_.state();
  // Of one that has ended by itself the last words are still read.
  if (state == State::kStarting || state == State::kLoading || state == State::kFailed) return;
  log_watch_.reset();
}

void Instance::fetch_log_tail() {
  environment_.log_tail(model_->name, machine_.id(),
                        [find = find_, id = machine_.id()](std::vector<std::string> lines) {
                          if (const auto self = find(id)) {
                            self->log_tail_ = std::move(lines);
                            self->feed(core::LogCollected{});
                          }
                        });
}

}  // namespace berth::residency
