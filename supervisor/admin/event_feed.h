#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "berth/v1/admin.pb.h"
#include "common/result.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/store/store.h"

namespace berth::admin {

// What of an event that caller may see; absent: nothing. Admins see everything. A client sees how
// models come and go and the requests of his tenant, without paths, processes and what an operator
// wrote into the configuration; and of what went wrong no more than the error told him (I12).
std::optional<v1::Event> cut_event(v1::Event event, const core::Caller& caller);

struct EventAsk {
  // Only events from then on, of those that are kept at most the youngest 5,000. The epoch, and no
  // `after`: the last 200.
  WallTime since{};
  std::optional<std::uint64_t> after;  // only events with a higher sequence
  std::string prefix;                  // of the name
  std::string request;                 // the field `request`; empty: all
  bool follow = false;
  core::Caller caller;
};

// Whom a feed gives its events, in their order. Calls come from any thread, also under the hub's
// lock, and never overlap: they must not block, and must not call the feed.
class EventListener {
 public:
  EventListener() = default;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  virtual ~EventListener() = default;

  virtual void on_feed_event(v1::Event event) = 0;
  // All kept events were given; last, and only without `follow`.
  virtual void on_feed_end() = 0;
};

// First what the store kept, then what the hub kept beyond that, then what happens.
class EventFeed : public std::enable_shared_from_this<EventFeed> {
 public:
  // Any thread. The listener is never called from within; once it is gone, nothing more happens.
  static std::shared_ptr<EventFeed> start(ServerState& state, EventAsk ask,
                                          std::weak_ptr<EventListener> listener);
  // No call of the listener is running or will come, once this has taken effect. Any thread, but
  // not from within the listener.
  void stop();

 private:
  EventFeed(ServerState& state, EventAsk ask, std::weak_ptr<EventListener> listener)
      : state_(state), ask_(std::move(ask)), listener_(std::move(listener)) {}

  void ask_store();
  void from_store(const Result<std::vector<store::StoredEvent>>& kept);
  void from_hub(const Event& event);
  void give(v1::Event event);
  [[nodiscard]] bool is_of_request(const Event& event) const;

  ServerState& state_;
  const EventAsk ask_;
  const std::weak_ptr<EventListener> listener_;
  std::mutex subscription_mutex_;
  std::unique_ptr<EventHub::Subscription> subscription_;
  bool stopped_ = false;
};

}  // namespace berth::admin
