#include "supervisor/gateway/openai/json_body.h"

#include <algorithm>
#include <boost/json/error.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "common/text.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

constexpr std::size_t kShownBytes = 50;

std::size_t count_of(std::string_view text, char wanted) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), wanted));
}

// A comma stands before every value but the first of each list or object, and those without one are
// bounded by the brackets. Commas within texts do not count.
std::size_t count_values(std::string_view body) {
  std::size_t values = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_text) {
      if (c == '\\') ++i;
      if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++values;
    }
  }
  return values;
}

bool has_too_many_values(std::string_view body) {
  // Nearly every body is decided by this look, which is many times as fast.
  if (body.size() <= kMaxValues) return false;
  return count_values(body) > kMaxValues;
}

std::string place(std::string_view body, std::size_t at) {
  const std::string_view before = body.substr(0, at);
  return "byte " + std::to_string(at) + " (line " + std::to_string(count_of(before, '\n') + 1) +
         ")";
}

tl::unexpected<Error> not_json(std::string_view body, std::size_t at, const json::error_code& why) {
  // The parser says only "syntax error" where bytes are no text.
  const std::optional<std::size_t> malformed = first_invalid_utf8(body);
  if (malformed && *malformed <= at) {
    return fail(Reason::kInvalidArgument, "The body is not valid UTF-8 at " +
                                              place(body, *malformed) + ". Send JSON as UTF-8.");
  }
  if (body.empty()) {
    return fail(Reason::kInvalidArgument, "The body is empty, but must be a JSON object.");
  }
  if (why == json::error::too_deep) {
    return fail(Reason::kInvalidArgument, "The body is nested more than " +
                                              std::to_string(kMaxDepth) + " deep at " +
                                              place(body, at) + ".");
  }
  if (why == json::error::incomplete) {
    return fail(Reason::kInvalidArgument,
                "The body is not valid JSON: it ends too early, at " + place(body, at) + ".");
  }
  return fail(Reason::kInvalidArgument,
              "The body is not valid JSON at " + place(body, at) + ": " + why.message() + ".");
}

// The place of a number that is infinite; empty: there is none.
std::string find_infinity(const json::value& value) {
  if (const double* number = value.if_double()) return std::isfinite(*number) ? "" : "value";
  if (const json::array* list = value.if_array()) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string found = find_infinity((*list)[i]);
      if (!found.empty()) return "[" + std::to_string(i) + "]" + (found == "value" ? "" : found);
    }
  } else if (const json::object* object = value.if_object()) {
    for (const auto& [name, member] : *object) {
      const std::string found = find_infinity(member);
      if (!found.empty()) {
        return "." + std::string(name.data(), name.size()) + (found == "value" ? "" : found);
      }
    }
  }
  return {};
}

}  // namespace

Result<json::object> parse_body(std::string_view body) {
  if (has_too_many_values(body)) {
    return fail(Reason::kBodyTooLarge, "The body has more than " + std::to_string(kMaxValues) +
                                           " JSON values. Send less at once.");
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::stream_parser parser(json::storage_ptr(), options);
  json::error_code why;
  const std::size_t read = parser.write_some(body.data(), body.size(), why);
  if (!why && read < body.size()) why = json::error::extra_data;
  if (!why) parser.finish(why);
  if (why) return not_json(body, read, why);
  json::value value = parser.release();
  json::object* object = value.if_object();
  if (object == nullptr) {
    return fail(Reason::kInvalidArgument,
                "The body must be a JSON object, not " + describe(value) + ".");
  }
  const std::string infinite = find_infinity(value);
  if (!infinite.empty()) {
    const std::string param = printable_line(infinite.substr(1), kShownBytes);
    return invalid_argument(param, param + " is a number that is too large to be read.");
  }
  return std::move(*object);
}

std::string describe(const json::value& value) {
  if (value.is_null()) return "null";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (const json::string* text = value.if_string()) {
    const std::string_view whole(text->data(), text->size());
    const std::string shown = printable_line(whole, kShownBytes);
    return "\"" + shown + (whole.size() > kShownBytes ? "…\"" : "\"");
  }
  return json::serialize(value);
}

}  // namespace berth::gateway::openai
