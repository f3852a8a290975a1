#include "supervisor/admin/event_cut.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "common/reason.h"
#include "supervisor/core/entitlement.h"

namespace berth::admin {
namespace {

// What a client may see: an event that is added to the catalogue is an admin's until it stands
// here, and so is each of its fields.
constexpr std::array<std::string_view, 11> kOfEverybody = {
    "events.gap",        "load.started",     "load.progress",  "load.ready",
    "load.failed",       "load.interrupted", "failure.stands", "failure.lifted",
    "instance.stopping", "instance.exited",  "instance.died"};
constexpr std::string_view kOfRequests = "request.";
constexpr std::array<std::string_view, 23> kFields = {
    "after",         "next",     "model",         "instance",          "phase",
    "fraction",      "took_ms",  "window",        "failure_class",     "reason",
    "record",        "cause",    "weights_bytes", "kv_bytes",          "request",
    "waited_ms",     "message",  "finish_reason", "completion_tokens", "exit",
    "prompt_tokens", "protocol", "working_bytes"};

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
  } else if (!among(kOfEverybody, event.name())) {
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

bool may_see(const Event& event, const core::Caller& caller) {
  if (caller.admin()) return true;
  if (event.name.starts_with(kOfRequests)) return has_text(event, "tenant", caller.tenant);
  return among(kOfEverybody, event.name);
}

std::vector<std::string> names_for_clients() {
  return {kOfEverybody.begin(), kOfEverybody.end()};
}

bool has_text(const Event& event, std::string_view field, const std::string& text) {
  return std::ranges::any_of(event.fields, [&](const EventField& one) {
    const auto* value = std::get_if<std::string>(&one.value);
    return one.name == field && value != nullptr && *value == text;
  });
}

}  // namespace berth::admin
