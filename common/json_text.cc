#include "common/json_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/text.h"

namespace berth {
namespace {

void append_well_formed(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default: {
        const auto byte = static_cast<std::uint8_t>(c);
        if (byte >= 0x20 && byte != 0x7F) {
          out.push_back(c);
        } else {
          out += "\\u00";
          out.push_back(kHex[byte >> 4U]);
          out.push_back(kHex[byte & 0x0FU]);
        }
      }
    }
  }
}

template <typename Number>
void append_number(std::string& out, Number number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc()) out.append(digits.data(), end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (true) {
    const auto bad = first_invalid_utf8(text);
    append_well_formed(out, text.substr(0, bad.value_or(text.size())));
    if (!bad) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(*bad + 1);
  }
  out.push_back('"');
}

void append_json_number(std::string& out, double number) {
  append_number(out, number);
}

void append_json_number(std::string& out, float number) {
  append_number(out, number);
}

}  // namespace berth
