#include <memory>
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
  explicit WatchStateCall(grpc::CallbackServerContext& context) : EventWriter(context) {}

  void run(ServerState& state, core::Caller caller, Duration interval,
           const std::shared_ptr<WatchStateCall>& self) {
    const std::lock_guard lock(mutex_);
    if (!over_) watch_ = StateWatch::start(state, std::move(caller), interval, self);
  }
  // He watches as long as the call lives.
  void take(std::unique_ptr<EventHub::Place> place) { place_ = std::move(place); }
  void refuse(const CallFrom& from, const Error& error) {
    fail(from.detail(error), rpc::to_status(error));
  }

  void on_state(v1::State state) override {
    push_latest(std::move(state), [](const v1::State&) { return true; });
  }

 private:
  void on_over() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (watch_) watch_->stop();
    watch_.reset();
  }

  std::unique_ptr<EventHub::Place> place_;
  std::mutex mutex_;
  bool over_ = false;
  std::shared_ptr<StateWatch> watch_;
};

}  // namespace

grpc::ServerWriteReactor<v1::State>* start_watch_state(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::WatchStateRequest& request) {
  const auto call = std::make_shared<WatchStateCall>(context);
  call->begin(call);
  const Result<Duration> interval = watch_interval(request.interval_ms());
  if (!interval) {
    call->refuse(from, interval.error());
  } else if (auto place = state.events.take_place(from.caller.tenant); !place) {
    call->refuse(from, place.error());
  } else {
    call->take(*std::move(place));
    call->run(state, from.caller, *interval, call);
  }
  return call.get();
}

}  // namespace berth::admin
