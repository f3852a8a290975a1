#include "supervisor/admin/event_feed.h"

#include <utility>

#include "supervisor/admin/convert.h"
#include "supervisor/admin/event_cut.h"

namespace berth::admin {
namespace {

// That are given before the pool serves others.
constexpr std::size_t kAtOnce = 256;

}  // namespace

Event EventFeed::gap_between(std::uint64_t after, std::uint64_t next) const {
  Event gap = events::to_event(events::EventsGap{.after = static_cast<std::int64_t>(after),
                                                 .next = static_cast<std::int64_t>(next)});
  gap.time = state_.services.clock.wall_now();
  return gap;
}

std::shared_ptr<EventFeed> EventFeed::start(ServerState& state, EventAsk ask,
                                            std::unique_ptr<EventHub::Place> place,
                                            std::weak_ptr<EventListener> listener) {
  const std::shared_ptr<EventFeed> made(
      new EventFeed(state, std::move(ask), std::move(place), std::move(listener)));
  state.services.clock.post([made] { made->begin(); });
  return made;
}

// Under the hub's lock.
void EventFeed::from_hub(const EventHub::EventPtr& event) {
  if (!concerns(*event)) return;
  const std::lock_guard lock(mutex_);
  if (stopped_ || failed_) return;
  happened_.push_back(event);
  if (happened_.size() > kMostBehind) {
    const std::uint64_t given = given_;
    fail_with({Reason::kQueueFull,
               "Events came faster than they were read; ask again with `since` or Last-Event-ID."});
    gap_ = gap_between(given, event->sequence + 1);
    return;
  }
  if (!replaying_) pump_soon();
}

void EventFeed::refuse(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!stopped_ && !failed_) fail_with(error);
}

void EventFeed::fail_with(Error error) {
  drop();
  failed_ = std::move(error);
  paused_ = false;
  pump_soon();
}

bool EventFeed::concerns(const Event& event) const {
  if (event.time < ask_.since || !event.name.starts_with(ask_.prefix)) return false;
  if (!ask_.request.empty() && !has_text(event, "request", ask_.request)) return false;
  return may_see(event, ask_.caller);
}

void EventFeed::pump_soon() {
  if (pumping_ || paused_ || stopped_) return;
  pumping_ = true;
  state_.run_blocking([self = shared_from_this()] { self->pump(); });
}

void EventFeed::drop() {
  gap_.reset();
  kept_.clear();
  happened_.clear();
}

void EventFeed::pump() {
  const auto listener = listener_.lock();
  for (std::size_t i = 0; listener && i < kAtOnce; ++i) {
    if (!give_next(*listener)) return;
  }
  // Others wait for the pool, too.
  const std::lock_guard lock(mutex_);
  pumping_ = false;
  if (!listener) return drop();
  pump_soon();
}

// Whether to go on; if not, nothing is pumped any more.
bool EventFeed::give_next(EventListener& listener) {
  std::optional<v1::Event> next = take();
  if (!next) return give_end(listener);
  std::optional<v1::Event> cut = cut_event(*std::move(next), ask_.caller);
  return !cut || may_go_on(listener.on_feed_event(*std::move(cut)));
}

std::optional<v1::Event> EventFeed::take() {
  std::optional<store::StoredEvent> stored;
  EventHub::EventPtr happened;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return std::nullopt;
    if (gap_) return to_proto(*std::exchange(gap_, std::nullopt));
    if (failed_) return std::nullopt;
    if (!kept_.empty()) {
      stored = std::move(kept_.front());
      kept_.pop_front();
      given_ = stored->sequence;
    } else if (!replaying_ && !happened_.empty()) {
      happened = std::move(happened_.front());
      happened_.pop_front();
      if (happened->sequence > 0) given_ = happened->sequence;
    } else {
      return std::nullopt;
    }
  }
  return stored ? to_proto(*stored) : to_proto(*happened);
}

bool EventFeed::may_go_on(bool room) {
  if (room) return true;
  const std::lock_guard lock(mutex_);
  if (std::exchange(resumed_, false)) return true;
  if (failed_) return true;
  paused_ = true;
  pumping_ = false;
  return false;
}

bool EventFeed::is_something_to_give() const {
  if (stopped_) return false;
  if (gap_) return true;
  return !failed_ && (!kept_.empty() || (!replaying_ && !happened_.empty()));
}

// There was no event to take: an end, or nothing for now. Whether to go on.
bool EventFeed::give_end(EventListener& listener) {
  std::optional<Error> failed;
  {
    const std::lock_guard lock(mutex_);
    if (is_something_to_give()) return true;
    pumping_ = false;
    if (stopped_) return false;
    if (!failed_ && std::exchange(more_, false)) {
      state_.services.clock.post([self = shared_from_this()] { self->ask_store(); });
    }
    if (!failed_ && (replaying_ || ask_.follow)) return false;
    stopped_ = true;
    failed = failed_;
  }
  if (failed) {
    listener.on_feed_failed(*failed);
  } else {
    listener.on_feed_end();
  }
  return false;
}

void EventFeed::resume() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(paused_, false)) {
    resumed_ = true;
    return;
  }
  pump_soon();
}

void EventFeed::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    drop();
  }
  // Outside of the hub's lock and of the protocol's callbacks.
  state_.services.clock.post([self = shared_from_this()] {
    std::unique_ptr<EventHub::Subscription> ended;
    std::unique_ptr<EventHub::Place> place;
    std::unique_ptr<CallerWatch::Token> known;
    const std::lock_guard lock(self->mutex_);
    known = std::move(self->known_);
    ended = std::move(self->subscription_);
    place = std::move(self->place_);
  });
}

}  // namespace berth::admin
