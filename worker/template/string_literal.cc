#include "worker/template/string_literal.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::uint32_t kLastCodePoint = 0x10FFFF;
constexpr std::size_t kShownBytes = 12;

bool is_surrogate(std::uint32_t code) {
  return code >= 0xD800 && code <= 0xDFFF;
}

// The number of `digits` digits at the begin of `text`, or nothing where there are fewer.
std::optional<std::uint32_t> number(std::string_view text, std::size_t digits, int base) {
  std::uint32_t value = 0;
  const auto* const end = text.data() + std::min(digits, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != text.data() + digits) return std::nullopt;
  return value;
}

// The escapes that stand for one character each; see Python's reference, "String and Bytes
// literals".
std::optional<char> simple_escape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return std::nullopt;
  }
}

// Reads what follows a backslash, appends what it means, and returns how many bytes it took.
// Nothing: the escape is wrong.
std::optional<std::size_t> read_escape(std::string_view rest, std::string& out) {
  if (rest.empty()) return std::nullopt;
  const char c = rest.front();
  if (const auto simple = simple_escape(c)) {
    out.push_back(*simple);
    return 1;
  }
  if (c == '\n') return 1;  // the line goes on
  if (c >= '0' && c <= '7') {
    std::size_t digits = 0;
    std::uint32_t value = 0;
    while (digits < 3 && digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '7') {
      value = value * 8 + static_cast<std::uint32_t>(rest[digits++] - '0');
    }
    append_utf8(out, value);
    return digits;
  }
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    out.push_back('\\');  // Python keeps the backslash of an escape that it does not know
    return 0;
  }
  const auto code = number(rest.substr(1), digits, 16);
  if (!code || *code > kLastCodePoint || is_surrogate(*code)) return std::nullopt;
  append_utf8(out, *code);
  return 1 + digits;
}

}  // namespace

// minja's reader keeps every byte but the quote and the backslash as it is.
std::string minja_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || (c == '#' && out.back() == '{')) out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

Result<std::string> minja_string_literal(std::string_view content) {
  std::string text;
  text.reserve(content.size());
  for (std::size_t at = 0; at < content.size();) {
    if (content[at] != '\\') {
      text.push_back(content[at++]);
      continue;
    }
    const auto taken = read_escape(content.substr(at + 1), text);
    if (!taken) {
      return fail(Reason::kTemplateFailed,
                  "The model's chat template has a string with a wrong escape: " +
                      printable_line(content.substr(at, kShownBytes), kShownBytes));
    }
    at += 1 + *taken;
  }
  return minja_quoted(text);
}

}  // namespace berth::worker
