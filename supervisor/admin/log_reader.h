#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/process/log_follower.h"

namespace berth::admin {

struct LogAsk {
  std::string model;                   // or an alias
  std::optional<std::uint32_t> lines;  // from the end; 0: all; absent: 200
  bool follow = false;
  core::Caller caller;
};

// Whom a reader gives what it reads. Calls come from the pool and from the core strand, and never
// overlap.
class LogListener {
 public:
  LogListener() = default;
  LogListener(const LogListener&) = delete;
  LogListener& operator=(const LogListener&) = delete;
  virtual ~LogListener() = default;

  // At most 64 KiB. Returns whether there is room for more; false pauses until resume().
  virtual bool on_log(std::string chunk) = 0;
  // Nothing more comes. Errors: kPermissionDenied, kUnknownModel, kNotFound (nothing was written
  // yet), kUnauthenticated (the caller's key was revoked, or is another's now), kInternal.
  virtual void on_log_end(Status status) = 0;
};

// Reads a model's log for an admin: on the pool while the listener has room, and waits on the core
// strand while there is nothing to read. Exactly one of the two goes on at a time, so the follower
// needs no lock. Keeps itself alive while either goes on.
class LogReader : public std::enable_shared_from_this<LogReader> {
 public:
  // Any thread. The listener is never called from within.
  static std::shared_ptr<LogReader> start(ServerState& state, LogAsk ask,
                                          std::weak_ptr<LogListener> listener);
  // The listener has room again. Once for each on_log() that said otherwise. Any thread.
  void resume();
  // Any thread.
  void stop();

 private:
  LogReader(ServerState& state, LogAsk ask, std::weak_ptr<LogListener> listener)
      : state_(state), ask_(std::move(ask)), listener_(std::move(listener)) {}

  void refuse(const Error& error);
  std::optional<Error> refused();
  void find();
  void open();
  void pump();
  void go_on();
  // The listener has no room: whether nothing goes on until resume() or refuse().
  bool pauses();
  void wait();
  void end(Status status);

  ServerState& state_;
  const LogAsk ask_;
  const std::weak_ptr<LogListener> listener_;
  std::string path_;
  std::optional<process::LogFollower> follower_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::optional<Error> refused_;
  bool paused_ = false;
  bool resumed_ = false;  // before it was paused
  // Core strand.
  std::unique_ptr<CallerWatch::Token> known_;
  Timer waiting_;
};

}  // namespace berth::admin
