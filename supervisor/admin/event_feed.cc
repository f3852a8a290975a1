#include "supervisor/admin/event_feed.h"

#include <algorithm>
#include <array>
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
                                            std::weak_ptr<EventListener> listener) {
  const std::shared_ptr<EventFeed> made(new EventFeed(state, std::move(ask), std::move(listener)));
  state.services.clock.post([made] { made->ask_store(); });
  return made;
}

void EventFeed::ask_store() {
  const bool last_only = ask_.since == WallTime{} && !ask_.after;
  state_.store.events(
      {ask_.since, ask_.prefix, ask_.request}, last_only ? kLastEvents : kMostEvents,
      [self = shared_from_this()](Result<std::vector<store::StoredEvent>> kept) {
        // Thousands of events are converted: not on the core strand.
        auto events = std::make_shared<Result<std::vector<store::StoredEvent>>>(std::move(kept));
        self->state_.run_blocking([self, events] { self->from_store(*events); });
      });
}

// On the pool.
void EventFeed::from_store(const Result<std::vector<store::StoredEvent>>& kept) {
  std::uint64_t last = ask_.after.value_or(0);
  // Without a store there are still the events of this run.
  if (kept) {
    for (const store::StoredEvent& event : *kept) {
      if (event.sequence <= last) continue;
      last = event.sequence;
      give(to_proto(event));
    }
  }
  // The hub calls under its lock, so the subscription cannot be ended from within.
  auto subscription =
      state_.events.subscribe(last, ask_.follow, [weak = weak_from_this()](const Event& event) {
        if (const auto feed = weak.lock()) feed->from_hub(event);
      });
  if (!ask_.follow) {
    if (const auto listener = listener_.lock()) listener->on_feed_end();
    return;
  }
  const std::lock_guard lock(subscription_mutex_);
  if (!stopped_) subscription_ = std::move(subscription);
}

void EventFeed::from_hub(const Event& event) {
  if (event.time < ask_.since || !event.name.starts_with(ask_.prefix)) return;
  if (!is_of_request(event)) return;
  give(to_proto(event));
}

void EventFeed::give(v1::Event event) {
  const auto listener = listener_.lock();
  if (!listener) return;
  std::optional<v1::Event> cut = cut_event(std::move(event), ask_.caller);
  if (cut) listener->on_feed_event(*std::move(cut));
}

bool EventFeed::is_of_request(const Event& event) const {
  if (ask_.request.empty()) return true;
  return std::ranges::any_of(event.fields, [this](const EventField& field) {
    const auto* text = std::get_if<std::string>(&field.value);
    return field.name == "request" && text != nullptr && *text == ask_.request;
  });
}

void EventFeed::stop() {
  // Outside of the hub's lock and of the protocol's callbacks.
  state_.services.clock.post([self = shared_from_this()] {
    std::unique_ptr<EventHub::Subscription> ended;
    const std::lock_guard lock(self->subscription_mutex_);
    self->stopped_ = true;
    ended = std::move(self->subscription_);
  });
}

}  // namespace berth::admin
