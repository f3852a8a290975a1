#pragma once

#include <string>
#include <string_view>

namespace berth {

// Appends `text` as a JSON string, with its quotes. Malformed UTF-8 becomes U+FFFD, so that the
// result is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

// Appends the shortest form that reads back as the same number; `null` for what JSON cannot say
// (infinities, not-a-number).
void append_json_number(std::string& out, double number);
// The shortest that reads back as the same float is half as long.
void append_json_number(std::string& out, float number);

}  // namespace berth
