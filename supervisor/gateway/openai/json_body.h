#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::gateway::openai {

// Brackets of a body that may be open at once: those of the deepest schema that is taken
// (docs/structured-output.md), and what stands around it.
inline constexpr std::size_t kMaxDepth = 144;
// Values of a body: a value takes some 30 bytes of memory, also where it is two bytes of text.
inline constexpr std::size_t kMaxValues = 2'000'000;

// A request's body, which must be one JSON object. Of a name that is there twice the last value
// counts, as with most parsers. Numbers that no double holds are refused.
// Errors: kInvalidArgument with the line and the byte where the JSON ends to be valid;
// kBodyTooLarge for more than kMaxValues.
Result<boost::json::object> parse_body(std::string_view body);

// For messages: "a list", "\"abc\"", "3.5"; at most 60 bytes.
std::string describe(const boost::json::value& value);

}  // namespace berth::gateway::openai
