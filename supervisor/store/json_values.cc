#include "supervisor/store/json_values.h"

#include <boost/json/parse.hpp>
#include <utility>

#include "common/text.h"

namespace berth::store {

namespace json = boost::json;

json::string text_value(std::string_view text) {
  if (!first_invalid_utf8(text)) return json::string(text);
  return json::string(printable_line(text, text.size()));
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string(text->data(), text->size()) : std::string();
}

std::optional<json::object> object_of(std::string_view text) {
  boost::system::error_code error;
  json::value parsed = json::parse(text, error);
  if (error || !parsed.is_object()) return std::nullopt;
  return std::move(parsed.get_object());
}

}  // namespace berth::store
