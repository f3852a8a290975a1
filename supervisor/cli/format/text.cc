#include "supervisor/cli/format/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "common/text.h"
#include "common/units.h"

namespace berth::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

// The character at the front of well-formed, not empty text.
struct Character {
  char32_t code;
  std::size_t length;
};
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(i < text.size() ? text[i] : 0));
  };
  const char32_t lead = byte(0);
  if (lead < 0xE0) {
    if (lead < 0xC0) return {lead, 1};
    return {((lead & 0x1FU) << 6U) | (byte(1) & 0x3FU), 2};
  }
  if (lead < 0xF0) {
    return {((lead & 0x0FU) << 12U) | ((byte(1) & 0x3FU) << 6U) | (byte(2) & 0x3FU), 3};
  }
  return {((lead & 0x07U) << 18U) | ((byte(1) & 0x3FU) << 12U) | ((byte(2) & 0x3FU) << 6U) |
              (byte(3) & 0x3FU),
          4};
}

struct Range {
  char32_t first;
  char32_t last;
};

// Characters that take no column: combining marks, joiners, variation selectors.
constexpr std::array kZeroWidth = {
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489},   Range{0x0591, 0x05BD}, Range{0x0610, 0x061A},
    Range{0x064B, 0x065F}, Range{0x0900, 0x0902},   Range{0x093C, 0x093C}, Range{0x0941, 0x0948},
    Range{0x094D, 0x094D}, Range{0x0E31, 0x0E31},   Range{0x0E34, 0x0E3A}, Range{0x0E47, 0x0E4E},
    Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},   Range{0x200B, 0x200F}, Range{0x202A, 0x202E},
    Range{0x2060, 0x206F}, Range{0x20D0, 0x20FF},   Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F},
    Range{0xFEFF, 0xFEFF}, Range{0xE0100, 0xE01EF},
};

// East Asian wide and full-width characters, and emoji that are shown wide.
constexpr std::array kWide = {
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},   Range{0x2329, 0x232A},
    Range{0x23E9, 0x23EC},   Range{0x2614, 0x2615},   Range{0x2648, 0x2653},
    Range{0x26A1, 0x26A1},   Range{0x2705, 0x2705},   Range{0x2728, 0x2728},
    Range{0x274C, 0x274C},   Range{0x2753, 0x2755},   Range{0x2E80, 0x303E},
    Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},
    Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},
    Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},
    Range{0xFFE0, 0xFFE6},   Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF},
    Range{0x1F900, 0x1F9FF}, Range{0x1FA70, 0x1FAFF}, Range{0x20000, 0x3FFFD},
};

template <std::size_t Size>
bool among(const std::array<Range, Size>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

std::size_t width_of(char32_t code) {
  if (code < 0x300) return 1;
  if (among(kZeroWidth, code)) return 0;
  return among(kWide, code) ? 2 : 1;
}

// Exactly `digits` decimal digits at the front of `text`, which loses them.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

tl::unexpected<Error> no_time(std::string_view text) {
  return fail(Reason::kInvalidArgument,
              "'" + printable_line(text, 64) +
                  "' is not a time: expected RFC 3339 with a zone, e.g. 2026-01-02T03:04:05Z or "
                  "2026-01-02T03:04:05+01:00");
}

// Seconds east of UTC.
std::optional<std::chrono::seconds> take_offset(std::string_view& text) {
  if (take(text, 'Z') || take(text, 'z')) return std::chrono::seconds(0);
  const bool east = take(text, '+');
  if (!east && !take(text, '-')) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || !take(text, ':')) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::chrono::seconds offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return east ? offset : -offset;
}

// The fraction of a second behind a dot, in milliseconds; further digits are dropped.
std::optional<std::chrono::milliseconds> take_fraction(std::string_view& text) {
  if (!take(text, '.')) return std::chrono::milliseconds(0);
  int value = 0;
  int digits = 0;
  while (const auto digit = take_number(text, 1)) {
    if (digits < 3) value = value * 10 + *digit;
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  for (int i = digits; i < 3; ++i) value *= 10;
  return std::chrono::milliseconds(value);
}

void append_line(std::vector<std::string>& lines, std::string_view text, std::size_t columns) {
  while (display_width(text) > columns) {
    // The last blank at which the line still fits, else the last character that fits.
    std::size_t at = 0;
    std::size_t width = 0;
    std::optional<std::size_t> blank;
    while (at < text.size()) {
      const Character next = first_character(text.substr(at));
      if (next.code == ' ') blank = at;
      width += width_of(next.code);
      if (width > columns) break;
      at += next.length;
    }
    if (at == 0) at = first_character(text).length;  // narrower than one character
    const std::size_t cut = blank && *blank > 0 ? *blank : at;
    lines.emplace_back(text.substr(0, cut));
    text.remove_prefix(std::min(text.size(), cut));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  lines.emplace_back(text);
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = first_invalid_utf8(text).value_or(text.size());
    std::string_view part = text.substr(0, good);
    while (!part.empty()) {
      const Character next = first_character(part);
      if (next.code == '\r') {
        // Dropped: a line that was redrawn must not overwrite another one.
      } else if (next.code < 0x20 && next.code != '\n' && next.code != '\t') {
        out += "\xE2\x90";  // U+2400 to U+241F, the control pictures
        out.push_back(static_cast<char>(0x80 + next.code));
      } else if (next.code == 0x7F) {
        out += "\xE2\x90\xA1";
      } else if (next.code >= 0x80 && next.code <= 0x9F) {
        out += kReplacement;
      } else {
        out += part.substr(0, next.length);
      }
      part.remove_prefix(next.length);
    }
    if (good == text.size()) break;
    out += kReplacement;
    text.remove_prefix(good + 1);
  }
  return out;
}

std::string harmless_json(std::string_view json) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto next = i + 1 < json.size() ? static_cast<unsigned char>(json[i + 1])
                                          : static_cast<unsigned char>(0);
    if (json[i] == '\xC2' && next >= 0x80 && next <= 0x9F) {
      out += "\\u00";
      out.push_back(kHex[next >> 4U]);
      out.push_back(kHex[next & 0x0FU]);
      ++i;
    } else {
      out.push_back(json[i]);
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character next = first_character(text);
    width += width_of(next.code);
    text.remove_prefix(std::min(next.length, text.size()));
  }
  return width;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t at = 0;
  std::size_t width = 0;
  while (at < text.size()) {
    const Character next = first_character(text.substr(at));
    if (width + width_of(next.code) > columns - 1) break;
    width += width_of(next.code);
    at += next.length;
  }
  return std::string(text.substr(0, at)) + std::string(kEllipsis);
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  columns = std::max<std::size_t>(columns, 1);
  while (true) {
    const std::size_t newline = text.find('\n');
    append_line(lines, text.substr(0, newline), columns);
    if (newline == std::string_view::npos) return lines;
    text.remove_prefix(newline + 1);
  }
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  std::string_view rest = text;
  const auto year = take_number(rest, 4);
  if (!year || !take(rest, '-')) return no_time(text);
  const auto month = take_number(rest, 2);
  if (!month || !take(rest, '-')) return no_time(text);
  const auto day = take_number(rest, 2);
  if (!day || !(take(rest, 'T') || take(rest, 't') || take(rest, ' '))) return no_time(text);
  const auto hour = take_number(rest, 2);
  if (!hour || !take(rest, ':')) return no_time(text);
  const auto minute = take_number(rest, 2);
  if (!minute || !take(rest, ':')) return no_time(text);
  const auto second = take_number(rest, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return no_time(text);
  const auto fraction = take_fraction(rest);
  if (!fraction) return no_time(text);
  const auto offset = take_offset(rest);
  if (!offset || !rest.empty()) return no_time(text);

  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return no_time(text);
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) + *fraction - *offset;
}

Result<WallTime> parse_since(std::string_view text, WallTime now) {
  if (const auto duration = parse_duration(text)) return now - *duration;
  if (const auto time = parse_rfc3339(text)) return *time;
  return fail(Reason::kInvalidArgument,
              "'" + printable_line(text, 64) +
                  "' is neither a duration (10m, 2h, 30s) nor a time with a zone "
                  "(2026-01-02T03:04:05Z)");
}

std::string format_count(std::uint64_t count) {
  struct Unit {
    double size;
    const char* name;
  };
  constexpr std::array kUnits = {Unit{1e12, "T"}, Unit{1e9, "B"}, Unit{1e6, "M"}, Unit{1e3, "K"}};
  const auto value = static_cast<double>(count);
  for (const Unit& unit : kUnits) {
    if (value < unit.size) continue;
    const double scaled = value / unit.size;
    std::array<char, 32> text{};
    const int decimals = scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2;
    std::snprintf(text.data(), text.size(), "%.*f%s", decimals, scaled, unit.name);
    return text.data();
  }
  return std::to_string(count);
}

std::string format_seconds(std::chrono::milliseconds duration) {
  const auto seconds =
      std::max(std::chrono::round<std::chrono::seconds>(duration), std::chrono::seconds(1));
  if (seconds < std::chrono::seconds(60)) return std::to_string(seconds.count()) + " s";
  return format_duration_human(seconds);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace berth::cli
