#include "supervisor/process/log_line.h"

#include <cstddef>
#include <cstdint>

namespace berth::process {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\x07';

bool within(char c, std::uint8_t low, std::uint8_t high) {
  const auto byte = static_cast<std::uint8_t>(c);
  return byte >= low && byte <= high;
}

// Length of the escape sequence (ECMA-48) that `text` begins with.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  std::size_t at = 2;
  if (text[1] == '[') {
    while (at < text.size() && within(text[at], 0x30, 0x3F)) ++at;
    while (at < text.size() && within(text[at], 0x20, 0x2F)) ++at;
    return at < text.size() && within(text[at], 0x40, 0x7E) ? at + 1 : at;
  }
  if (text[1] == ']') {
    for (; at < text.size(); ++at) {
      if (text[at] == kBell) return at + 1;
      if (text[at] == kEscape && at + 1 < text.size() && text[at + 1] == '\\') return at + 2;
    }
    return text.size();
  }
  if (within(text[1], 0x20, 0x2F)) {  // as ESC ( B
    while (at < text.size() && within(text[at], 0x20, 0x2F)) ++at;
    return at < text.size() && within(text[at], 0x30, 0x7E) ? at + 1 : at;
  }
  return within(text[1], 0x30, 0x7E) ? 2 : 1;
}

}  // namespace

std::string terminal_line(std::string_view raw) {
  std::string line;
  line.reserve(raw.size());
  while (!raw.empty()) {
    const std::size_t escape = raw.find(kEscape);
    line += raw.substr(0, escape);
    if (escape == std::string_view::npos) break;
    raw.remove_prefix(escape);
    raw.remove_prefix(escape_length(raw));
  }
  const std::size_t last = line.find_last_not_of('\r');
  line.resize(last == std::string::npos ? 0 : last + 1);
  const std::size_t carriage_return = line.rfind('\r');
  if (carriage_return != std::string::npos) line.erase(0, carriage_return + 1);
  return line;
}

}  // namespace berth::process
