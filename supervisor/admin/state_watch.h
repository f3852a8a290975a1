#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "berth/v1/admin.pb.h"
#include "common/clock.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"

namespace berth::admin {

// Whether two snapshots tell of different things. What moves by itself, as a ttl that runs down and
// the memory that is free, is no change.
bool differs(const v1::State& a, const v1::State& b);

// How often a watcher is told at most: 100 ms to 60 s; 0: 1 s. Errors: kInvalidArgument.
Result<Duration> watch_interval(std::uint32_t interval_ms);

// Whom a watch tells, from the pool; of states one after the other.
class StateListener {
 public:
  StateListener() = default;
  StateListener(const StateListener&) = delete;
  StateListener& operator=(const StateListener&) = delete;
  virtual ~StateListener() = default;

  virtual void on_state(v1::State state) = 0;
  // No more is told, but for an on_state() that is running. Errors: kUnauthenticated (the caller's
  // key was revoked, or is another's now).
  virtual void on_state_failed(const Error& error) = 0;
};

// Looks at the state once in each interval and tells what differs from what was told last; nothing
// is looked at while nobody watches. Keeps itself alive until stop(), or until its listener is
// gone.
class StateWatch : public std::enable_shared_from_this<StateWatch> {
 public:
  // Any thread. The listener is never called from within.
  static std::shared_ptr<StateWatch> start(ServerState& state, core::Caller caller,
                                           Duration interval,
                                           std::weak_ptr<StateListener> listener);
  // Any thread.
  void stop();

 private:
  StateWatch(ServerState& state, core::Caller caller, Duration interval,
             std::weak_ptr<StateListener> listener)
      : state_(state),
        caller_(std::move(caller)),
        interval_(interval),
        listener_(std::move(listener)) {}

  void begin();
  void refuse(const Error& error);
  void look();
  void on_looked(v1::State now);

  ServerState& state_;
  const core::Caller caller_;
  const Duration interval_;
  const std::weak_ptr<StateListener> listener_;
  std::unique_ptr<v1::State> told_;  // the pool's; one look at a time
  // Core strand.
  bool stopped_ = false;
  std::unique_ptr<CallerWatch::Token> known_;
  Timer timer_;
};

}  // namespace berth::admin
