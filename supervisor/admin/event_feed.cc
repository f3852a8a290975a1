#include "supervisor/admin/event_feed.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/reason.h"
#include "supervisor/admin/convert.h"
#include "supervisor/core/entitlement.h"

namespace berth::admin {
namespace {

constexpr std::size_t kLastEvents = 200;
constexpr std::size_t kMostEvents = 5'000;
// That are given before the pool serves others.
constexpr std::size_t kAtOnce = 256;

// What a client may see: an event that is added to the catalogue is an admin's until it stands
// here, and so is each of its fields.
constexpr std::array<std::string_view, 10> kOfModels = {
    "load.started",   "load.progress",  "load.ready",        "load.failed",     "load.interrupted",
    "failure.stands", "failure.lifted", "instance.stopping", "instance.exited", "instance.died"};
constexpr std::string_view kOfRequests = "request.";
constexpr std::array<std::string_view, 21> kFields = {
    "model",         "instance",  "phase",        "fraction",      "took_ms",           "window",
    "failure_class", "reason",    "record",       "cause",         "weights_bytes",     "kv_bytes",
    "request",       "waited_ms", "message",      "finish_reason", "completion_tokens", "exit",
    "prompt_tokens", "protocol",  "working_bytes"};

// Of those, what tells a client who is not entitled why loads fail and what they take.
constexpr std::array<std::string_view, 6> kOfEntitled = {
    "failure_class", "exit", "cause", "weights_bytes", "kv_bytes", "working_bytes"};

template <std::size_t kSize>
bool among(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_of_tenant(const v1::Event& event, const std::string& tenant) {
  return std::ranges::any_of(event.fields(), [&tenant](const v1::EventField& field) {
    return field.name() == "tenant" && field.text() == tenant;
  });
}

// The reason for which a request ended; of any other event: why a load failed.
Reason reason_of(const v1::Event& event) {
  if (!event.name().starts_with(kOfRequests)) return Reason::kLoadFailed;
  for (const v1::EventField& field : event.fields()) {
    if (field.name() == "reason") return reason_from_name(field.text()).value_or(Reason::kInternal);
  }
  return Reason::kInternal;
}

// A field that a client may see, as this one may.
void cut_field(v1::EventField& field, Reason reason, bool of_request, const core::Caller& caller) {
  const bool sentence = field.name() == (of_request ? "message" : "reason");
  if (sentence) field.set_text(core::text_for(field.text(), reason, caller));
}

}  // namespace

std::optional<v1::Event> cut_event(v1::Event event, const core::Caller& caller) {
  if (caller.admin()) return event;
  const bool of_request = event.name().starts_with(kOfRequests);
  if (of_request) {
    if (!is_of_tenant(event, caller.tenant)) return std::nullopt;
  } else if (!among(kOfModels, event.name())) {
    return std::nullopt;
  }
  const Reason reason = reason_of(event);
  google::protobuf::RepeatedPtrField<v1::EventField> fields;
  fields.Swap(event.mutable_fields());
  for (v1::EventField& field : fields) {
    if (!among(kFields, field.name())) continue;
    if (among(kOfEntitled, field.name()) && !core::may_know_failures(caller)) continue;
    cut_field(field, reason, of_request, caller);
    *event.add_fields() = std::move(field);
  }
  return event;
}

std::shared_ptr<EventFeed> EventFeed::start(ServerState& state, EventAsk ask,
                                            std::unique_ptr<EventHub::Place> place,
                                            std::weak_ptr<EventListener> listener) {
  const std::shared_ptr<EventFeed> made(
      new EventFeed(state, std::move(ask), std::move(place), std::move(listener)));
  state.services.clock.post([made] { made->ask_store(); });
  return made;
}

void EventFeed::ask_store() {
  watch_caller();
  const bool last_only = ask_.since == WallTime{} && !ask_.after;
  store::EventFilter filter{ask_.since, ask_.prefix, ask_.request};
  filter.after = ask_.after.value_or(0);
  // The bound is for what he may see: nobody else's events push his out.
  if (!ask_.caller.admin()) {
    filter.tenant = ask_.caller.tenant;
    filter.names.assign(kOfModels.begin(), kOfModels.end());
  }
  state_.store.events(
      std::move(filter), last_only ? kLastEvents : kMostEvents,
      [self = shared_from_this()](Result<Kept> kept) {
        // Thousands of events are looked through: not on the core strand.
        auto events = std::make_shared<Result<Kept>>(std::move(kept));
        self->state_.run_blocking([self, events] { self->from_store(std::move(*events)); });
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
void EventFeed::from_store(Result<Kept> kept) {
  std::uint64_t last = ask_.after.value_or(0);
  // Without a store there are still the events of this run.
  Kept events = kept ? *std::move(kept) : Kept();
  if (!events.empty()) last = events.back().sequence;
  EventHub::Watched watched;
  if (ask_.follow) {
    watched = state_.events.watch(last, [weak = weak_from_this()](const EventHub::EventPtr& event) {
      if (const auto feed = weak.lock()) feed->from_hub(event);
    });
  } else {
    watched.kept = state_.events.kept(last);
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
  kept_.assign(std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
  happened_.insert(happened_.begin(), watched.kept.begin(), watched.kept.end());
  replaying_ = false;
  pump_soon();
}

// Under the hub's lock.
void EventFeed::from_hub(const EventHub::EventPtr& event) {
  if (!concerns(*event)) return;
  const std::lock_guard lock(mutex_);
  if (stopped_ || failed_) return;
  happened_.push_back(event);
  if (happened_.size() > kMostBehind) {
    return fail_with(
        {Reason::kQueueFull,
         "Events came faster than they were read; ask again with `since` or Last-Event-ID."});
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
  const auto has = [&event](std::string_view name, const std::string& value) {
    return std::ranges::any_of(event.fields, [&](const EventField& field) {
      const auto* text = std::get_if<std::string>(&field.value);
      return field.name == name && text != nullptr && *text == value;
    });
  };
  if (!ask_.request.empty() && !has("request", ask_.request)) return false;
  if (ask_.caller.admin()) return true;
  if (event.name.starts_with(kOfRequests)) return has("tenant", ask_.caller.tenant);
  return among(kOfModels, event.name);
}

void EventFeed::pump_soon() {
  if (pumping_ || paused_ || stopped_) return;
  pumping_ = true;
  state_.run_blocking([self = shared_from_this()] { self->pump(); });
}

void EventFeed::drop() {
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
    if (stopped_ || failed_ || replaying_) return std::nullopt;
    if (!kept_.empty()) {
      stored = std::move(kept_.front());
      kept_.pop_front();
    } else if (!happened_.empty()) {
      happened = std::move(happened_.front());
      happened_.pop_front();
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

// There was no event to take: an end, or nothing for now. Whether to go on.
bool EventFeed::give_end(EventListener& listener) {
  std::optional<Error> failed;
  {
    const std::lock_guard lock(mutex_);
    if (!stopped_ && !failed_ && (!kept_.empty() || !happened_.empty())) return true;
    pumping_ = false;
    if (stopped_ || (!failed_ && ask_.follow)) return false;
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
