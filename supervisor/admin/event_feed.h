#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "berth/v1/admin.pb.h"
#include "common/event.h"
#include "common/result.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/store/store.h"

namespace berth::admin {

struct EventAsk {
  // Only events from then on. The epoch, and no `after`: the last 200.
  WallTime since{};
  std::optional<std::uint64_t> after;  // only events with a higher sequence
  std::string prefix;                  // of the name
  std::string request;                 // the field `request`; empty: all
  bool follow = false;
  core::Caller caller;
};

// Whom a feed gives its events, in their order. Calls come from the pool and never overlap; they
// must not block, nor call the feed.
class EventListener {
 public:
  EventListener() = default;
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  virtual ~EventListener() = default;

  // Returns whether there is room for more; false pauses until EventFeed::resume().
  virtual bool on_feed_event(v1::Event event) = 0;
  // All kept events were given; last, and only without `follow`.
  virtual void on_feed_end() = 0;
  // No more is given; last. Errors: kQueueFull (more than EventFeed::kMostBehind events came and
  // were not taken), kUnauthenticated (the caller's key was revoked, or is another's now).
  virtual void on_feed_failed(const Error& error) = 0;
};

// First what the store kept, a page at a time, then what the hub kept beyond that, then what
// happens. Where the hub still has all that was asked for, it is given from there alone. Where some
// of what was asked for is not kept any more, or came too fast, an events.gap stands in its place.
// Converts on the pool, and only while the listener has room: who does not read holds no more than
// a page, or kMostBehind events that all watchers share.
class EventFeed : public std::enable_shared_from_this<EventFeed> {
 public:
  static constexpr std::size_t kMostBehind = 2 * EventHub::kKept;

  // Any thread. The listener is never called from within; once it is gone, nothing more happens.
  static std::shared_ptr<EventFeed> start(ServerState& state, EventAsk ask,
                                          std::unique_ptr<EventHub::Place> place,
                                          std::weak_ptr<EventListener> listener);
  // The listener has room again. Once for each on_feed_event() that said otherwise. Any thread.
  void resume();
  // No call of the listener comes any more, but for one that is running. Any thread.
  void stop();

 private:
  EventFeed(ServerState& state, EventAsk ask, std::unique_ptr<EventHub::Place> place,
            std::weak_ptr<EventListener> listener)
      : state_(state),
        ask_(std::move(ask)),
        listener_(std::move(listener)),
        place_(std::move(place)) {}

  // Which events are missing: those between these numbers. Noticed now.
  [[nodiscard]] Event gap_between(std::uint64_t after, std::uint64_t next) const;
  // --- What was (event_replay.cc). Core strand.
  void begin();
  void watch_caller();
  [[nodiscard]] bool hub_has_all() const;
  void ask_store();
  // On the pool.
  void from_store(Result<store::EventPage>& page);
  // `last`: the number behind which to go on; `stored`: of the youngest that the store keeps.
  void follow_hub(std::uint64_t last, std::uint64_t stored);
  [[nodiscard]] bool last_only() const { return ask_.since == WallTime{} && !ask_.after; }
  // --- What happens.
  void from_hub(const EventHub::EventPtr& event);
  [[nodiscard]] bool concerns(const Event& event) const;
  void refuse(const Error& error);
  // Under the lock.
  void look_for_gap(const store::EventPage& page, bool is_first);
  [[nodiscard]] bool is_something_to_give() const;
  void fail_with(Error error);
  void pump_soon();
  void drop();
  // On the pool.
  void pump();
  bool give_next(EventListener& listener);
  std::optional<v1::Event> take();
  bool may_go_on(bool room);
  bool give_end(EventListener& listener);

  ServerState& state_;
  const EventAsk ask_;
  const std::weak_ptr<EventListener> listener_;
  std::unique_ptr<EventHub::Place> place_;

  std::mutex mutex_;
  std::unique_ptr<EventHub::Subscription> subscription_;
  std::unique_ptr<CallerWatch::Token> known_;
  std::uint64_t last_ = 0;   // number of what the store gave
  std::uint64_t given_ = 0;  // and the listener was given, or has from before
  bool begun_ = false;
  bool more_ = false;                    // the store may have another page
  std::optional<Event> gap_;             // given first
  std::deque<store::StoredEvent> kept_;  // of the store
  std::deque<EventHub::EventPtr> happened_;
  bool replaying_ = true;  // what happens waits for what was
  bool pumping_ = false;
  bool paused_ = false;
  bool resumed_ = false;  // before it was paused
  bool stopped_ = false;
  std::optional<Error> failed_;
};

}  // namespace berth::admin
