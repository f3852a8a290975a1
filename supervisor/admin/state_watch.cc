#include "supervisor/admin/state_watch.h"

#include <chrono>
#include <string>
#include <utility>

#include "supervisor/admin/state.h"

namespace berth::admin {
namespace {

void clear_moving(v1::State& state) {
  state.mutable_server()->clear_loop_lag_us();
  state.mutable_server()->clear_resident_bytes();
  state.clear_domains();
  for (v1::ModelState& model : *state.mutable_models()) {
    if (!model.has_instance()) continue;
    model.mutable_instance()->clear_ttl_ms();
    model.mutable_instance()->clear_resident_bytes();
    if (model.instance().has_loading()) model.mutable_instance()->mutable_loading()->clear_eta_ms();
  }
}

}  // namespace

bool differs(const v1::State& a, const v1::State& b) {
  v1::State left = a;
  v1::State right = b;
  clear_moving(left);
  clear_moving(right);
  // There are no maps in it, so that equal messages have equal bytes.
  return left.SerializeAsString() != right.SerializeAsString();
}

Result<Duration> watch_interval(std::uint32_t interval_ms) {
  constexpr std::uint32_t kUsual = 1'000;
  constexpr std::uint32_t kLeast = 100;
  constexpr std::uint32_t kMost = 60'000;
  if (interval_ms == 0) interval_ms = kUsual;
  if (interval_ms < kLeast || interval_ms > kMost) {
    ErrorExtras extras;
    extras.param = "interval_ms";
    return fail(Error(Reason::kInvalidArgument,
                      "interval_ms is " + std::to_string(interval_ms) +
                          "; it may be 100 to 60000 milliseconds, or 0 for 1000.",
                      std::move(extras)));
  }
  return Duration(std::chrono::milliseconds(interval_ms));
}

std::shared_ptr<StateWatch> StateWatch::start(ServerState& state, core::Caller caller,
                                              Duration interval,
                                              std::weak_ptr<StateListener> listener) {
  const std::shared_ptr<StateWatch> made(
      new StateWatch(state, std::move(caller), interval, std::move(listener)));
  state.services.clock.post([made] { made->begin(); });
  return made;
}

void StateWatch::begin() {
  if (stopped_) return;
  known_ = state_.callers->watch(caller_, [weak = weak_from_this()](const Error& error) {
    if (const auto watch = weak.lock()) watch->refuse(error);
  });
  look();
}

void StateWatch::refuse(const Error& error) {
  state_.run_blocking([self = shared_from_this(), error] {
    if (const auto listener = self->listener_.lock()) listener->on_state_failed(error);
  });
  stop();
}

void StateWatch::look() {
  get_shared_state(state_, caller_,
                   [self = shared_from_this()](v1::State now) { self->on_looked(std::move(now)); });
}

// On the pool.
void StateWatch::on_looked(v1::State now) {
  const auto listener = listener_.lock();
  if (!listener) return;
  if (!told_ || differs(*told_, now)) {
    told_ = std::make_unique<v1::State>(now);
    listener->on_state(std::move(now));
  }
  state_.services.clock.post([self = shared_from_this()] {
    if (self->stopped_) return;
    self->timer_ = self->state_.services.clock.sleep_for(self->interval_, [self] {
      self->timer_.reset();
      self->look();
    });
  });
}

void StateWatch::stop() {
  state_.services.clock.post([self = shared_from_this()] {
    self->stopped_ = true;
    self->timer_.reset();
    self->known_.reset();
  });
}

}  // namespace berth::admin
