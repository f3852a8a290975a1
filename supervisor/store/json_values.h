#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace berth::store {

// As a JSON string; what is no UTF-8 is made printable.
boost::json::string text_value(std::string_view text);

// The member of that name; empty where there is none, or one of another kind.
std::string text_at(const boost::json::object& object, std::string_view name);

// Ditto; absent where there is none, or it does not fit the type.
template <typename Number>
std::optional<Number> number_at(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  if (!value || !(value->is_int64() || value->is_uint64())) return std::nullopt;
  boost::system::error_code error;
  const Number number = value->to_number<Number>(error);
  if (error) return std::nullopt;
  return number;
}

// Whether there is none of that name, or one that fits the type.
template <typename Number>
bool number_or_none(const boost::json::object& object, std::string_view name) {
  return !object.contains(name) || number_at<Number>(object, name);
}

// Absent: it is no JSON, or something else than an object.
std::optional<boost::json::object> object_of(std::string_view text);

}  // namespace berth::store
