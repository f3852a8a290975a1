#include <chrono>
#include <memory>
#include <utility>

#include "supervisor/admin/event_feed.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

// Events as a stream of messages.
class WatchEventsCall : public rpc::EventWriter<v1::Event>, public EventListener {
 public:
  WatchEventsCall(grpc::CallbackServerContext& context, CallFrom from)
      : EventWriter(context), from_(std::move(from)) {}

  void run(ServerState& state, EventAsk ask, const std::shared_ptr<WatchEventsCall>& self) {
    auto place = state.events.take_place(ask.caller.tenant);
    if (!place) return on_feed_failed(place.error());
    const std::lock_guard lock(mutex_);
    if (!over_) feed_ = EventFeed::start(state, std::move(ask), *std::move(place), self);
  }

  bool on_feed_event(v1::Event event) override { return push(std::move(event)); }
  void on_feed_end() override { end(grpc::Status::OK); }
  void on_feed_failed(const Error& error) override {
    fail(from_.detail(error), rpc::to_status(error));
  }

 private:
  void on_room() override {
    const std::lock_guard lock(mutex_);
    if (feed_) feed_->resume();
  }
  void on_over() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (feed_) feed_->stop();
    feed_.reset();
  }

  const CallFrom from_;
  std::mutex mutex_;
  bool over_ = false;
  std::shared_ptr<EventFeed> feed_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* start_watch_events(grpc::CallbackServerContext& context,
                                                        ServerState& state, CallFrom from,
                                                        const v1::WatchEventsRequest& request) {
  EventAsk ask;
  ask.since = WallTime{std::chrono::milliseconds(request.since_unix_ms())};
  if (request.has_after()) ask.after = request.after();
  ask.prefix = request.prefix();
  ask.request = request.request_id();
  ask.follow = request.follow();
  ask.caller = from.caller;
  const auto call = std::make_shared<WatchEventsCall>(context, std::move(from));
  call->begin(call);
  call->run(state, std::move(ask), call);
  return call.get();
}

}  // namespace berth::admin
