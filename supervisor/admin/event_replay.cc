// How a feed begins: what was, from the store and from the hub.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "supervisor/admin/event_cut.h"
#include "supervisor/admin/event_feed.h"

namespace berth::admin {
namespace {

constexpr std::size_t kLastEvents = 200;
// That are read from the store at once, and held until the listener has taken them.
constexpr std::size_t kPage = 256;

}  // namespace

void EventFeed::begin() {
  watch_caller();
  const std::uint64_t after = ask_.after.value_or(0);
  // One that has not been given yet is of another numbering: that file of the store is gone.
  const bool is_known = after <= state_.events.last_sequence();
  {
    const std::lock_guard lock(mutex_);
    last_ = is_known ? after : 0;
    given_ = last_;
  }
  if (!is_known || !hub_has_all()) return ask_store();
  state_.run_blocking([self = shared_from_this(), after] { self->follow_hub(after, after); });
}

// Then the store is not asked: the hub has the events of level debug, too.
bool EventFeed::hub_has_all() const {
  const EventHub::EventPtr oldest = state_.events.oldest();
  if (!oldest) return false;
  if (ask_.after) return oldest->sequence <= *ask_.after + 1;
  return ask_.since != WallTime{} && oldest->time < ask_.since;
}

void EventFeed::ask_store() {
  store::EventFilter filter{ask_.since, ask_.prefix, ask_.request};
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || failed_) return;
    filter.after = last_;
  }
  filter.oldest_first = !last_only();
  // Nobody else's events push his out.
  if (!ask_.caller.admin()) {
    filter.tenant = ask_.caller.tenant;
    filter.names = names_for_clients();
  }
  state_.store.events(std::move(filter), last_only() ? kLastEvents : kPage,
                      [self = shared_from_this()](Result<store::EventPage> page) {
                        // Not on the core strand.
                        auto read = std::make_shared<Result<store::EventPage>>(std::move(page));
                        self->state_.run_blocking([self, read] { self->from_store(*read); });
                      });
}

void EventFeed::watch_caller() {
  auto known = state_.callers->watch(ask_.caller, [weak = weak_from_this()](const Error& error) {
    if (const auto feed = weak.lock()) feed->refuse(error);
  });
  const std::lock_guard lock(mutex_);
  if (!stopped_) known_ = std::move(known);
}

// On the pool.
void EventFeed::from_store(Result<store::EventPage>& page) {
  store::EventPage read = page ? *std::move(page) : store::EventPage();
  // Without a store there are still the events of this run.
  if (const auto of_hub = state_.events.oldest(); read.oldest == 0 && of_hub) {
    read.oldest = of_hub->sequence;
    read.oldest_time = of_hub->time;
    read.youngest = of_hub->sequence - 1;
  }
  std::uint64_t last = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || failed_) return;
    look_for_gap(read, !std::exchange(begun_, true));
    if (!read.events.empty()) {
      last_ = read.events.back().sequence;
      more_ = !last_only() && read.events.size() >= kPage;
      kept_.assign(std::make_move_iterator(read.events.begin()),
                   std::make_move_iterator(read.events.end()));
    }
    if (more_) return pump_soon();
    last = last_;
  }
  follow_hub(last, read.youngest);
}

// Only where a number or a time was asked for, or a page has come before: what it did not give yet
// may be gone now.
void EventFeed::look_for_gap(const store::EventPage& page, bool is_first) {
  const std::uint64_t after = is_first ? ask_.after.value_or(0) : last_;
  const bool of_another_numbering = after > last_;
  const bool by_number = (ask_.after || !is_first) && page.oldest > after + 1;
  const bool by_time =
      !ask_.after && ask_.since != WallTime{} && page.oldest > 1 && page.oldest_time > ask_.since;
  if (of_another_numbering || by_number || (is_first && by_time)) {
    gap_ = gap_between(after, std::max<std::uint64_t>(page.oldest, 1));
  }
}

// On the pool, when the store has given all.
void EventFeed::follow_hub(std::uint64_t last, std::uint64_t stored) {
  EventHub::Watched watched;
  if (ask_.follow) {
    watched = state_.events.watch(last, [weak = weak_from_this()](const EventHub::EventPtr& event) {
      if (const auto feed = weak.lock()) feed->from_hub(event);
    });
  } else {
    watched = state_.events.kept(last);
  }
  std::erase_if(watched.kept,
                [this](const EventHub::EventPtr& event) { return !concerns(*event); });
  std::unique_ptr<EventHub::Subscription> ended;
  const std::lock_guard lock(mutex_);
  if (stopped_ || failed_) {
    // The hub's lock is never taken under ours.
    ended = std::move(watched.subscription);
    return;
  }
  subscription_ = std::move(watched.subscription);
  happened_.insert(happened_.begin(), watched.kept.begin(), watched.kept.end());
  // The store has given up, or too much happened since it was asked.
  if (const std::uint64_t given = std::max(last, stored); watched.oldest > given + 1) {
    happened_.push_front(std::make_shared<const Event>(gap_between(given, watched.oldest)));
  }
  replaying_ = false;
  pump_soon();
}

}  // namespace berth::admin
