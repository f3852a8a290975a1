#include "worker/template/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::worker {
namespace {

using minja::Value;

// Python's repr(): the shortest digits that read back the same, with an exponent where the point
// would stand more than 4 places before or 16 behind the first digit.
std::string float_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  std::array<char, 40> buffer{};
  const double size = std::fabs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format);
  std::string text(buffer.data(), end);
  if (error != std::errc()) throw std::runtime_error("a number cannot be written");
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void value(const Value& value, int level);
  std::string take() { return std::move(out_); }

 private:
  void string(std::string_view text);
  void escape(std::uint32_t code);
  std::size_t wide_character(std::string_view text);
  void array(const Value& value, int level);
  void object(Value value, int level);
  void key(const Value& key);
  void new_line(int level) {
    if (!style_.indent) return;
    const auto depth = static_cast<std::size_t>(*style_.indent) * static_cast<std::size_t>(level);
    out_.append("\n").append(depth, ' ');
  }

  const JsonStyle& style_;
  std::string out_;
};

void Writer::value(const Value& value, int level) {
  if (value.is_callable()) throw std::runtime_error("a function cannot be written as JSON");
  if (value.is_array()) {
    array(value, level);
  } else if (value.is_object()) {
    object(value, level);
  } else if (value.is_string()) {
    string(value.get<std::string>());
  } else if (value.is_number_float()) {
    out_ += float_text(value.get<double>());
  } else {
    out_ += value.get<nlohmann::ordered_json>().dump();
  }
}

void Writer::array(const Value& value, int level) {
  if (value.empty()) {
    out_ += "[]";
    return;
  }
  out_.push_back('[');
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i > 0) out_ += style_.item_separator;
    new_line(level + 1);
    this->value(value.at(i), level + 1);
  }
  new_line(level);
  out_.push_back(']');
}

void Writer::object(Value value, int level) {
  auto keys = value.keys();
  if (keys.empty()) {
    out_ += "{}";
    return;
  }
  if (style_.sorted_keys) std::sort(keys.begin(), keys.end());
  out_.push_back('{');
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) out_ += style_.item_separator;
    new_line(level + 1);
    key(keys[i]);
    out_ += style_.key_separator;
    this->value(value.at(keys[i]), level + 1);
  }
  new_line(level);
  out_.push_back('}');
}

void Writer::key(const Value& key) {
  string(key.is_string() ? key.get<std::string>() : key.get<nlohmann::ordered_json>().dump());
}

void Writer::escape(std::uint32_t code) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out_ += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out_.push_back(kHex[(code >> shift) & 0xFU]);
}

// Escapes the character that begins `text`, which is well-formed and not ASCII; returns its bytes.
std::size_t Writer::wide_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  std::uint32_t code = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size && i < text.size(); ++i) {
    code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  if (code < 0x10000) {
    escape(code);
  } else {
    escape(0xD800U + ((code - 0x10000) >> 10U));
    escape(0xDC00U + ((code - 0x10000) & 0x3FFU));
  }
  return size;
}

void Writer::string(std::string_view text) {
  constexpr std::string_view kNamed = "\"\\\n\r\t\b\f";
  constexpr std::string_view kNames = "\"\\nrtbf";
  out_.push_back('"');
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (const auto named = kNamed.find(text[i]); named != std::string_view::npos) {
      out_.push_back('\\');
      out_.push_back(kNames[named]);
    } else if (byte < 0x20) {
      escape(byte);
    } else if (style_.ascii && byte >= 0x80) {
      i += wide_character(text.substr(i)) - 1;
    } else {
      out_.push_back(text[i]);
    }
  }
  out_.push_back('"');
}

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  Writer writer(style);
  writer.value(value, 0);
  return writer.take();
}

}  // namespace berth::worker
