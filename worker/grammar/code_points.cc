#include "worker/grammar/code_points.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.h"

namespace berth::worker {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// \xHH, \uHHHH or \UHHHHHHHH.
void append_hex(std::string& text, std::uint32_t code_point) {
  const unsigned bits = code_point <= 0xFF ? 8 : code_point <= 0xFFFF ? 16 : 32;
  text += bits == 8 ? "\\x" : bits == 16 ? "\\u" : "\\U";
  for (unsigned shift = bits; shift > 0; shift -= 4) {
    text += kHexDigits[(code_point >> (shift - 4)) & 0xFU];
  }
}

void append_class_character(std::string& text, std::uint32_t code_point) {
  const bool letter = (code_point >= '0' && code_point <= '9') ||
                      (code_point >= 'A' && code_point <= 'Z') ||
                      (code_point >= 'a' && code_point <= 'z');
  if (letter) {
    text += static_cast<char>(code_point);
  } else {
    append_hex(text, code_point);
  }
}

// Characters that a JSON string writes as an escape of two characters.
constexpr std::array<std::pair<char, char>, 7> kShortEscapes = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

}  // namespace

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

std::vector<CodePointSet::Range> CodePointSet::ranges() const {
  auto sorted = ranges_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> apart;
  for (const auto& one : sorted) {
    if (!apart.empty() && one.first <= apart.back().last + 1) {
      apart.back().last = std::max(apart.back().last, one.last);
    } else {
      apart.push_back(one);
    }
  }
  return apart;
}

CodePointSet CodePointSet::complement() const {
  CodePointSet others;
  std::uint32_t next = 0;
  for (const auto& one : ranges()) {
    if (one.first > next) others.add(next, one.first - 1);
    next = one.last + 1;
  }
  if (next <= kLastCodePoint) others.add(next, kLastCodePoint);
  return others;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  auto rest = complement();
  rest.add(other);
  return rest.complement();
}

bool CodePointSet::contains(std::uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [code_point](const Range& one) {
    return one.first <= code_point && code_point <= one.last;
  });
}

std::string gbnf_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (c == '\n') {
      literal += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      append_hex(literal, byte);
    } else {
      literal += c;
    }
  }
  literal += '"';
  return literal;
}

std::string gbnf_class(const CodePointSet& set) {
  const auto ranges = set.ranges();
  if (ranges.size() == 1 && ranges.front().first == ranges.front().last) {
    std::string one;
    append_utf8(one, ranges.front().first);
    return gbnf_literal(one);
  }
  std::string text = "[";
  for (const auto& one : ranges) {
    append_class_character(text, one.first);
    if (one.first == one.last) continue;
    if (one.last > one.first + 1) text += '-';
    append_class_character(text, one.last);
  }
  text += ']';
  return text;
}

std::string gbnf_json_character(const CodePointSet& set) {
  CodePointSet never;  // as themselves: controls, what needs an escape, surrogates
  never.add(0, 0x1F);
  never.add('"', '"');
  never.add('\\', '\\');
  never.add(0xD800, 0xDFFF);
  std::vector<std::string> ways;
  const auto raw = set.without(never);
  if (!raw.ranges().empty()) ways.push_back(gbnf_class(raw));
  for (const auto& [character, letter] : kShortEscapes) {
    if (!set.contains(static_cast<unsigned char>(character))) continue;
    ways.push_back(gbnf_literal(std::string("\\") + letter));
  }
  const auto ranges = set.ranges();
  if (ways.empty() && ranges.size() == 1 && ranges.front().first == ranges.front().last &&
      ranges.front().first < 0x20) {
    std::string hex = "\\u00";
    hex += kHexDigits[ranges.front().first >> 4U];
    hex += kHexDigits[ranges.front().first & 0xFU];
    return gbnf_literal(hex);
  }
  if (ways.empty()) return {};
  if (ways.size() == 1) return ways.front();
  std::string text = "(";
  for (std::size_t i = 0; i < ways.size(); ++i) text += (i == 0 ? "" : " | ") + ways[i];
  return text + ")";
}

}  // namespace berth::worker
