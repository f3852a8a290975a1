#pragma once

#include <minja/minja.hpp>
#include <optional>
#include <string>

namespace berth::worker {

// How json.dumps of Python writes; see its documentation.
struct JsonStyle {
  std::optional<int> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii = false;
  bool sorted_keys = false;
};

// Writes a value as Python's json.dumps does, to the byte. Throws std::runtime_error where it
// cannot be written (a function).
std::string to_json(const minja::Value& value, const JsonStyle& style);

}  // namespace berth::worker
