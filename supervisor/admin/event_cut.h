#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "common/event.h"
#include "supervisor/core/caller.h"

namespace berth::admin {

// What of an event that caller may see; absent: nothing. Admins see everything. A client sees how
// models come and go and the requests of his tenant, without paths, processes and what an operator
// wrote into the configuration; and of what went wrong no more than the error told him (I12).
std::optional<v1::Event> cut_event(v1::Event event, const core::Caller& caller);

// Whether he may see anything of it.
bool may_see(const Event& event, const core::Caller& caller);

// The names of the events that every client may see; beside them those of his requests.
std::vector<std::string> names_for_clients();

// Whether the event has that text in a field.
bool has_text(const Event& event, std::string_view field, const std::string& text);

}  // namespace berth::admin
