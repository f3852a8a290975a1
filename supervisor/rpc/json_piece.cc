#include "supervisor/rpc/json_piece.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace berth::rpc {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 144;

// Takes note of nothing: only the grammar counts.
struct Nothing {
  static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();

  using Text = json::string_view;
  using Failed = json::error_code;
  static bool on_document_begin(Failed& /*failed*/) { return true; }
  static bool on_document_end(Failed& /*failed*/) { return true; }
  static bool on_array_begin(Failed& /*failed*/) { return true; }
  static bool on_array_end(std::size_t /*size*/, Failed& /*failed*/) { return true; }
  static bool on_object_begin(Failed& /*failed*/) { return true; }
  static bool on_object_end(std::size_t /*size*/, Failed& /*failed*/) { return true; }
  static bool on_string_part(Text /*text*/, std::size_t /*size*/, Failed& /*failed*/) {
    return true;
  }
  static bool on_string(Text /*text*/, std::size_t /*size*/, Failed& /*failed*/) { return true; }
  static bool on_key_part(Text /*text*/, std::size_t /*size*/, Failed& /*failed*/) { return true; }
  static bool on_key(Text /*text*/, std::size_t /*size*/, Failed& /*failed*/) { return true; }
  static bool on_number_part(Text /*text*/, Failed& /*failed*/) { return true; }
  static bool on_int64(std::int64_t /*number*/, Text /*text*/, Failed& /*failed*/) { return true; }
  static bool on_uint64(std::uint64_t /*number*/, Text /*text*/, Failed& /*failed*/) {
    return true;
  }
  static bool on_double(double /*number*/, Text /*text*/, Failed& /*failed*/) { return true; }
  static bool on_bool(bool /*value*/, Failed& /*failed*/) { return true; }
  static bool on_null(Failed& /*failed*/) { return true; }
  static bool on_comment_part(Text /*text*/, Failed& /*failed*/) { return true; }
  static bool on_comment(Text /*text*/, Failed& /*failed*/) { return true; }
};

std::string_view first_bytes(JsonKind kind) {
  switch (kind) {
    case JsonKind::kArray:
      return "[";
    case JsonKind::kObject:
      return "{";
    case JsonKind::kTextOrObject:
      return "\"{";
    case JsonKind::kSchema:
      return "{tf";
  }
  return {};
}

std::string_view name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kTextOrObject:
      return "a string or an object";
    case JsonKind::kSchema:
      return "an object, true or false";
  }
  return {};
}

}  // namespace

Status check_json(std::string_view text, std::string_view field, JsonKind kind) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::basic_parser<Nothing> parser(options);
  json::error_code failed;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), failed);
  if (!failed && read < text.size()) failed = json::error::extra_data;
  if (failed) {
    return invalid_argument(field, std::string(field) + " is not valid JSON at byte " +
                                       std::to_string(read) + ": " + failed.message() + ".");
  }
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos &&
      first_bytes(kind).find(text[first]) != std::string_view::npos) {
    return {};
  }
  return invalid_argument(
      field, std::string(field) + " must be " + std::string(name_of(kind)) + " in JSON.");
}

}  // namespace berth::rpc
