#include "supervisor/gateway/openai/fields.h"

#include <cmath>
#include <utility>

#include "common/json_text.h"
#include "supervisor/gateway/openai/json_body.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;

json::string_view key(std::string_view name) {
  return {name.data(), name.size()};
}

std::string number_text(double number) {
  std::string text;
  append_json_number(text, number);
  return text;
}

}  // namespace

void FirstError::add(std::string_view param, std::string message) {
  if (error_) return;
  ErrorExtras extras;
  extras.param = std::string(param);
  error_.emplace(Reason::kInvalidArgument, std::move(message), std::move(extras));
}

Status FirstError::status() const {
  if (error_) return fail(*error_);
  return {};
}

const json::value* Fields::find(std::string_view name) const {
  const json::value* value = object_.if_contains(key(name));
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string Fields::path(std::string_view name) const {
  std::string whole = path_;
  if (!whole.empty() && !name.empty()) whole += '.';
  whole += name;
  return whole;
}

void Fields::refuse_value(std::string_view name, std::string_view wanted,
                          const json::value& value) const {
  refuse(name, path(name) + " must be " + std::string(wanted) + ", not " + describe(value) + ".");
}

std::optional<std::string> Fields::text(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const json::string* text = value->if_string()) return std::string(text->data(), text->size());
  refuse_value(name, "a text", *value);
  return std::nullopt;
}

std::optional<bool> Fields::flag(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const bool* flag = value->if_bool()) return *flag;
  refuse_value(name, "true or false", *value);
  return std::nullopt;
}

std::optional<std::int64_t> Fields::whole(std::string_view name, std::int64_t low,
                                          std::int64_t high) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = as_whole(*value);
  if (number && *number >= low && *number <= high) return number;
  const std::string range =
      low == high ? std::to_string(low)
                  : "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  refuse_value(name, range, *value);
  return std::nullopt;
}

std::optional<float> Fields::number(std::string_view name, const Range& range) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->to_number<double>();
    const bool above = range.above_low ? number > range.low : number >= range.low;
    const auto narrow = static_cast<float>(number);
    // A double just above an open bound may be the bound itself as a float.
    const bool kept = !range.above_low || static_cast<double>(narrow) > range.low;
    if (std::isfinite(number) && above && number <= range.high && kept) return narrow;
  }
  refuse_value(name,
               "a number " + std::string(range.above_low ? "above " : "from ") +
                   number_text(range.low) + (range.above_low ? " and at most " : " to ") +
                   number_text(range.high),
               *value);
  return std::nullopt;
}

std::optional<Fields> Fields::object(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (const json::object* object = value->if_object()) return Fields(*object, path(name), errors_);
  refuse_value(name, "an object", *value);
  return std::nullopt;
}

const json::array* Fields::list(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (const json::array* list = value->if_array()) return list;
  refuse_value(name, "a list", *value);
  return nullptr;
}

std::optional<std::int64_t> as_whole(const json::value& value) {
  if (const std::int64_t* number = value.if_int64()) return *number;
  if (const double* number = value.if_double()) {
    // Beyond 2^53 not every whole number is a double, so that it may not be what was meant.
    constexpr double kExact = 9007199254740992;
    if (std::trunc(*number) == *number && std::abs(*number) <= kExact) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return std::nullopt;
}

}  // namespace berth::gateway::openai
