#include <memory>
#include <string>
#include <utility>

#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/state_watch.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

// Snapshots as a stream; a reader that is slow gets the latest only.
class WatchStateCall : public rpc::EventWriter<v1::State>, public StateListener {
 public:
  WatchStateCall(grpc::CallbackServerContext& context, CallFrom from)
      : EventWriter(context), from_(std::move(from)) {}

  void run(ServerState& state, Duration interval, const std::shared_ptr<WatchStateCall>& self) {
    const std::lock_guard lock(mutex_);
    if (!over_) watch_ = StateWatch::start(state, from_.caller, interval, self);
  }
  // He watches as long as the call lives.
  void take(std::unique_ptr<EventHub::Place> place) { place_ = std::move(place); }

  void on_state(v1::State state) override {
    push_latest(std::move(state), [](const v1::State&) { return true; });
  }
  void on_state_failed(const Error& error) override {
    fail(from_.detail(error), rpc::to_status(error));
  }

 private:
  void on_over() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (watch_) watch_->stop();
    watch_.reset();
  }

  const CallFrom from_;
  std::unique_ptr<EventHub::Place> place_;
  std::mutex mutex_;
  bool over_ = false;
  std::shared_ptr<StateWatch> watch_;
};

}  // namespace

grpc::ServerWriteReactor<v1::State>* start_watch_state(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::WatchStateRequest& request) {
  const std::string tenant = from.caller.tenant;
  const auto call = std::make_shared<WatchStateCall>(context, std::move(from));
  call->begin(call);
  const Result<Duration> interval = watch_interval(request.interval_ms());
  if (!interval) {
    call->on_state_failed(interval.error());
  } else if (auto place = state.events.take_place(tenant); !place) {
    call->on_state_failed(place.error());
  } else {
    call->take(*std::move(place));
    call->run(state, *interval, call);
  }
  return call.get();
}

}  // namespace berth::admin
