#include <chrono>
#include <memory>
#include <utility>

#include "supervisor/admin/event_feed.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

// A watcher that is this far behind is told so and dropped: it can ask again with `since`.
constexpr std::size_t kMostUnread = 20'000;

// Events as a stream of messages.
class WatchEventsCall : public rpc::EventWriter<v1::Event>, public EventListener {
 public:
  explicit WatchEventsCall(grpc::CallbackServerContext& context) : EventWriter(context) {}

  void run(ServerState& state, EventAsk ask, const std::shared_ptr<WatchEventsCall>& self) {
    const std::lock_guard lock(mutex_);
    if (!over_) feed_ = EventFeed::start(state, std::move(ask), self);
  }

  void on_feed_event(v1::Event event) override {
    if (waiting() >= kMostUnread) {
      return end(rpc::to_status(Error(
          Reason::kQueueFull, "Events came faster than they were read; ask again with `since`.")));
    }
    push(std::move(event));
  }
  void on_feed_end() override { end(grpc::Status::OK); }

 private:
  void on_over() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    if (feed_) feed_->stop();
    feed_.reset();
  }

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
  ask.prefix = request.prefix();
  ask.request = request.request_id();
  ask.follow = request.follow();
  ask.caller = from.caller;
  const auto call = std::make_shared<WatchEventsCall>(context);
  call->begin(call);
  call->run(state, std::move(ask), call);
  return call.get();
}

}  // namespace berth::admin
