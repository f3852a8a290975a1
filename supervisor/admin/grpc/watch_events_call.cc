#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/grpc/convert.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

constexpr std::size_t kLastEvents = 200;
constexpr std::size_t kMostEvents = 5'000;
// A watcher that is this far behind is told so and dropped: it can ask again with `since`.
constexpr std::size_t kMostUnread = 20'000;

// First what the store kept, then what the hub kept beyond that, then what happens.
class WatchEventsCall : public rpc::EventWriter<v1::Event> {
 public:
  WatchEventsCall(grpc::CallbackServerContext& context, ServerState& state,
                  v1::WatchEventsRequest request)
      : EventWriter(context), state_(state), request_(std::move(request)) {}

  void run(const std::shared_ptr<WatchEventsCall>& self) {
    const bool last_only = request_.since_unix_ms() == 0;
    const WallTime since{std::chrono::milliseconds(request_.since_unix_ms())};
    state_.services.clock.post([self, last_only, since] {
      self->state_.store.events(
          {since, self->request_.prefix(), self->request_.request_id()},
          last_only ? kLastEvents : kMostEvents,
          [self](Result<std::vector<store::StoredEvent>> kept) {
            // Thousands of events are converted: not on the core strand.
            auto events =
                std::make_shared<Result<std::vector<store::StoredEvent>>>(std::move(kept));
            self->state_.run_blocking([self, events] { self->from_store(self, *events); });
          });
    });
  }

 private:
  void from_store(const std::shared_ptr<WatchEventsCall>& self,
                  const Result<std::vector<store::StoredEvent>>& kept) {
    std::uint64_t last = 0;
    // Without a store there are still the events of this run.
    if (kept) {
      for (const store::StoredEvent& event : *kept) {
        last = event.sequence;
        push(to_proto(event));
      }
    }
    // The hub calls under its lock, so the subscription cannot be ended from within.
    auto subscription = state_.events.subscribe(last, request_.follow(),
                                                [weak = std::weak_ptr(self)](const Event& event) {
                                                  if (const auto call = weak.lock())
                                                    call->from_hub(event);
                                                });
    if (!request_.follow()) return end(grpc::Status::OK);
    const std::lock_guard lock(subscription_mutex_);
    if (!over_) subscription_ = std::move(subscription);
  }

  void from_hub(const Event& event) {
    if (event.time.time_since_epoch().count() < request_.since_unix_ms()) return;
    if (!event.name.starts_with(request_.prefix()) || !is_of_request(event)) return;
    if (waiting() >= kMostUnread) {
      return end(rpc::to_status(Error(
          Reason::kQueueFull, "Events came faster than they were read; ask again with `since`.")));
    }
    push(to_proto(event));
  }

  [[nodiscard]] bool is_of_request(const Event& event) const {
    if (request_.request_id().empty()) return true;
    return std::ranges::any_of(event.fields, [this](const EventField& field) {
      const auto* text = std::get_if<std::string>(&field.value);
      return field.name == "request" && text != nullptr && *text == request_.request_id();
    });
  }

  void on_over() override {
    // Outside of gRPC's callback and of the hub's lock.
    state_.services.clock.post(
        [self = std::static_pointer_cast<WatchEventsCall>(shared_from_this())] {
          std::unique_ptr<EventHub::Subscription> ended;
          const std::lock_guard lock(self->subscription_mutex_);
          self->over_ = true;
          ended = std::move(self->subscription_);
        });
  }

  ServerState& state_;
  const v1::WatchEventsRequest request_;
  std::mutex subscription_mutex_;
  std::unique_ptr<EventHub::Subscription> subscription_;
  bool over_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::Event>* start_watch_events(grpc::CallbackServerContext& context,
                                                        ServerState& state,
                                                        const v1::WatchEventsRequest& request) {
  const auto call = std::make_shared<WatchEventsCall>(context, state, request);
  call->begin(call);
  call->run(call);
  return call.get();
}

}  // namespace berth::admin
