#include "common/text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace berth {
namespace {

struct Decoded {
  char32_t code = 0;
  // Bytes of the character; of a malformed one, of the longest part that might have begun one.
  std::size_t length = 0;
  bool valid = false;
  // Malformed only because the text ends within the character.
  bool incomplete = false;
};

// The character at the front of `text`, which is not empty (Unicode 15, table 3-7).
Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true, false};
  std::size_t length = 0;
  char32_t code = 0;
  std::uint8_t low = 0x80;  // bounds of the second byte
  std::uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    code = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    code = lead & 0x0FU;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    code = lead & 0x07U;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {0, 1, false, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {0, i, false, true};
    const std::uint8_t next = byte(i);
    if (next < low || next > high) return {0, i, false, false};
    code = (code << 6U) | (next & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {code, length, true, false};
}

// Control, format and non-characters that have no place in one line of a terminal or a log.
bool unprintable(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F)) return true;
  if (code < 0xAD) return false;
  if (code == 0xAD || code == 0xFEFF) return true;
  if (code >= 0x200B && code <= 0x200F) return true;
  if (code >= 0x2028 && code <= 0x202E) return true;
  if (code >= 0x2060 && code <= 0x206F) return true;
  if (code >= 0xFFF9 && code <= 0xFFFB) return true;
  if (code >= 0xFDD0 && code <= 0xFDEF) return true;
  return (code & 0xFFFEU) == 0xFFFE;
}

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Edit distance with transposition of neighbours (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before[j - 2] + 1);
      }
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), to_lower);
  return out;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<std::uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Decoded next = decode(text.substr(at));
    if (!next.valid) return at;
    at += next.length;
  }
  return std::nullopt;
}

std::uint32_t take_code_point(std::string_view& text) {
  const auto character = decode(text);
  text.remove_prefix(character.length);
  return character.code;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto tail = [&out, code_point](unsigned shift) {
    out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0U | (code_point >> 6U));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0U | (code_point >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code_point >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::size_t utf8_prefix(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  // The byte at `limit` begins a character, unless it continues one that began up to three bytes
  // before it.
  for (std::size_t back = 1; back <= 3 && back <= limit; ++back) {
    const std::size_t start = limit - back;
    const auto byte = static_cast<std::uint8_t>(text[start]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;
    const Decoded whole = decode(text.substr(start));
    if (whole.valid && start + whole.length > limit) return start;
    break;
  }
  return limit;
}

std::size_t utf8_complete_prefix(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::size_t start = text.size() - back;
    const auto byte = static_cast<std::uint8_t>(text[start]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;
    const Decoded last = decode(text.substr(start));
    if (last.incomplete) return start;
    break;
  }
  return text.size();
}

std::string printable_line(std::string_view text, std::size_t limit) {
  std::string out;
  out.reserve(std::min(text.size(), limit));
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\t' || c == '\n') {
      if (out.size() + 1 > limit) break;
      out.push_back(' ');
      ++at;
      continue;
    }
    const Decoded next = decode(text.substr(at));
    if (next.valid && !unprintable(next.code)) {
      if (out.size() + next.length > limit) break;
      out.append(text.substr(at, next.length));
    }
    at += next.length;
  }
  return out;
}

std::vector<std::string> nearest_names(std::string_view wanted,
                                       const std::vector<std::string>& names, std::size_t count) {
  constexpr std::size_t kLongest = 256;  // bounds the work on a hostile name
  const std::string key = lowered(wanted.substr(0, kLongest));
  if (key.empty()) return {};
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& name : names) {
    const std::string candidate = lowered(std::string_view(name).substr(0, kLongest));
    if (candidate.empty()) continue;
    const std::size_t tolerance =
        std::max<std::size_t>(1, std::max(key.size(), candidate.size()) / 3);
    std::size_t distance = edit_distance(key, candidate);
    const bool extends = candidate.size() > key.size() && key.size() >= 2 &&
                         candidate.compare(0, key.size(), key) == 0;
    const bool shortened = key.size() > candidate.size() && candidate.size() >= 2 &&
                           key.compare(0, candidate.size(), candidate) == 0;
    if (extends || shortened) distance = std::min<std::size_t>(distance, 1);
    if (distance > tolerance) continue;
    ranked.emplace_back(distance, &name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : *a.second < *b.second;
  });
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < ranked.size() && i < count; ++i) nearest.push_back(*ranked[i].second);
  return nearest;
}

std::string join_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace berth
