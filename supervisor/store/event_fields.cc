#include "supervisor/store/event_fields.h"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdint>
#include <variant>

#include "common/text.h"

namespace berth::store {
namespace {

struct ToJson {
  boost::json::value operator()(const std::string& text) const {
    if (!first_invalid_utf8(text)) return boost::json::string(text);
    return boost::json::string(printable_line(text, text.size()));
  }
  boost::json::value operator()(std::int64_t number) const { return number; }
  boost::json::value operator()(double number) const {
    // JSON has no infinity.
    if (!std::isfinite(number)) return boost::json::string(std::to_string(number));
    return number;
  }
  boost::json::value operator()(bool truth) const { return truth; }
};

}  // namespace

std::string encode_fields(const std::vector<EventField>& fields) {
  boost::json::object object;
  object.reserve(fields.size());
  for (const EventField& field : fields) object[field.name] = std::visit(ToJson{}, field.value);
  return boost::json::serialize(object);
}

std::vector<std::pair<std::string, FieldValue>> decode_fields(std::string_view json) {
  std::vector<std::pair<std::string, FieldValue>> fields;
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(json, error);
  if (error || !parsed.is_object()) return fields;
  for (const auto& [name, value] : parsed.get_object()) {
    FieldValue kept;
    if (const auto* text = value.if_string()) {
      kept = std::string(text->data(), text->size());
    } else if (const auto* integer = value.if_int64()) {
      kept = *integer;
    } else if (const auto* number = value.if_double()) {
      kept = *number;
    } else if (const auto* truth = value.if_bool()) {
      kept = *truth;
    } else {
      continue;
    }
    fields.emplace_back(std::string(name), std::move(kept));
  }
  return fields;
}

}  // namespace berth::store
