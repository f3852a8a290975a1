#include "supervisor/core/log/line_cleaner.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/text.h"

namespace berth::core {
namespace {

constexpr char kEscape = '\x1b';
constexpr char kBell = '\x07';

bool within(char c, std::uint8_t low, std::uint8_t high) {
  const auto byte = static_cast<std::uint8_t>(c);
  return byte >= low && byte <= high;
}

// Length of the escape sequence (ECMA-48) that `text` begins with. One that the line ends within
// reaches to the line's end, as on a terminal.
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
  if (within(text[1], 0x20, 0x2F)) {  // a choice of a character set, as ESC ( B
    while (at < text.size() && within(text[at], 0x20, 0x2F)) ++at;
    return at < text.size() && within(text[at], 0x30, 0x7E) ? at + 1 : at;
  }
  return within(text[1], 0x30, 0x7E) ? 2 : 1;
}

// Whether all bytes are printable ASCII. Eight at a time: most lines of a flood end here.
bool plain(std::string_view text) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  std::size_t at = 0;
  std::uint64_t odd = 0;
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    // The high bit of a byte: set in it, by adding 1 to 0x7F, or by borrowing from less than 0x20.
    odd |= eight | (eight + kOnes) | (eight - 0x20U * kOnes);
  }
  if ((odd & kHighBits) != 0) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(),
                     [](char c) { return within(c, 0x20, 0x7E); });
}

void remove_escapes(std::string_view raw, std::string& out) {
  while (!raw.empty()) {
    const std::size_t escape = raw.find(kEscape);
    out += raw.substr(0, escape);
    if (escape == std::string_view::npos) return;
    raw.remove_prefix(escape);
    raw.remove_prefix(escape_length(raw));
  }
}

// What a terminal shows after all carriage returns.
std::string_view after_carriage_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

// As printable_line, but tabs stay: they indent.
std::string printable_with_tabs(std::string_view line) {
  std::string out;
  out.reserve(line.size());
  while (true) {
    const std::size_t tab = line.find('\t');
    out += printable_line(line.substr(0, tab), kLongestLogLine);
    if (tab == std::string_view::npos) return out;
    out += '\t';
    line.remove_prefix(tab + 1);
  }
}

}  // namespace

std::string_view without_trailing_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view without_leading_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}

std::string_view clean_line(std::string_view raw, std::string& scratch) {
  if (plain(raw)) return without_trailing_blanks(raw);
  std::string_view line = raw;
  if (raw.find(kEscape) != std::string_view::npos) {
    scratch.clear();
    remove_escapes(raw, scratch);
    line = scratch;
  }
  line = after_carriage_returns(line);
  if (!plain(line)) {
    scratch = printable_with_tabs(line);
    line = scratch;
  }
  return without_trailing_blanks(line);
}

}  // namespace berth::core
