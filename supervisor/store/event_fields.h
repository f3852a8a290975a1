#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/event.h"

namespace berth::store {

// How an event's fields are kept: one JSON object, in the order of the fields, so that an operator
// can read them with sqlite3. What is no UTF-8 is made printable.
std::string encode_fields(const std::vector<EventField>& fields);

// What encode_fields() made, and whatever an older or newer version made; parts that are no text,
// number or truth are left out. Text that is no JSON object gives no fields.
std::vector<std::pair<std::string, FieldValue>> decode_fields(std::string_view json);

}  // namespace berth::store
