#include "supervisor/admin/log_reader.h"

#include <chrono>
#include <utility>

#include "supervisor/process/log_file.h"

namespace berth::admin {
namespace {

constexpr std::uint32_t kDefaultLines = 200;
constexpr int kChunksAtOnce = 4;
constexpr auto kPollWithoutInotify = std::chrono::milliseconds(500);

}  // namespace

std::shared_ptr<LogReader> LogReader::start(ServerState& state, LogAsk ask,
                                            std::weak_ptr<LogListener> listener) {
  const std::shared_ptr<LogReader> made(new LogReader(state, std::move(ask), std::move(listener)));
  state.services.clock.post([made] { made->find(); });
  return made;
}

// The one that goes on ends it: the pool with its next chunk, or the wait, which it cuts short. One
// whose listener does not read goes on for this.
void LogReader::refuse(const Error& error) {
  bool was_paused = false;
  {
    const std::lock_guard lock(mutex_);
    refused_ = error;
    was_paused = std::exchange(paused_, false);
  }
  if (was_paused) return go_on();
  state_.services.clock.post([self = shared_from_this()] {
    if (!self->waiting_.armed()) return;
    self->waiting_.reset();
    self->go_on();
  });
}

std::optional<Error> LogReader::refused() {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void LogReader::find() {
  if (!ask_.caller.admin()) {
    return end(fail(Reason::kPermissionDenied, "Only an admin may read a model's log."));
  }
  const Result<std::string> model = state_.name_of(ask_.model);
  if (!model) return end(fail(model.error()));
  if (stopped_) return;
  known_ = state_.callers->watch(ask_.caller, [weak = weak_from_this()](const Error& error) {
    if (const auto reader = weak.lock()) reader->refuse(error);
  });
  path_ = process::log_path(state_.config->server.log_dir, *model);
  state_.run_blocking([self = shared_from_this()] { self->open(); });
}

// On the pool.
void LogReader::open() {
  std::optional<std::uint32_t> lines = ask_.lines.value_or(kDefaultLines);
  if (lines == 0) lines.reset();
  Result<process::LogFollower> opened = process::LogFollower::open(path_, lines, ask_.follow);
  if (!opened) return end(fail(opened.error()));
  follower_.emplace(*std::move(opened));
  pump();
}

// On the pool.
void LogReader::pump() {
  for (int chunks = 0; !stopped_; ++chunks) {
    // Others wait for the pool, too.
    if (chunks == kChunksAtOnce) return go_on();
    if (const std::optional<Error> error = refused()) return end(fail(*error));
    Result<std::string> chunk = follower_->read();
    if (!chunk) return end(fail(chunk.error()));
    if (chunk->empty()) {
      if (!ask_.follow) return end({});
      return wait();
    }
    const std::shared_ptr<LogListener> listener = listener_.lock();
    if (!listener) return;
    if (!listener->on_log(*std::move(chunk)) && pauses()) return;
  }
}

bool LogReader::pauses() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(resumed_, false) || refused_) return false;
  paused_ = true;
  return true;
}

void LogReader::wait() {
  state_.services.clock.post([self = shared_from_this()] {
    if (self->stopped_) return;
    if (self->refused()) return self->go_on();
    const int fd = self->follower_->wait_fd();
    const auto again = [self] {
      self->waiting_.reset();
      self->state_.run_blocking([self] { self->pump(); });
    };
    self->waiting_ = fd >= 0 ? self->state_.on_readable(fd, again)
                             : self->state_.services.clock.sleep_for(kPollWithoutInotify, again);
  });
}

void LogReader::resume() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(paused_, false)) {
      resumed_ = true;
      return;
    }
  }
  go_on();
}

void LogReader::go_on() {
  state_.run_blocking([self = shared_from_this()] { self->pump(); });
}

void LogReader::stop() {
  stopped_ = true;
  state_.services.clock.post([self = shared_from_this()] {
    self->waiting_.reset();
    self->known_.reset();
  });
}

void LogReader::end(Status status) {
  if (stopped_) return;
  if (const std::shared_ptr<LogListener> listener = listener_.lock()) {
    listener->on_log_end(std::move(status));
  }
}

}  // namespace berth::admin
