#include "supervisor/core/log/log_prefix.h"

#include <algorithm>
#include <array>

#include "supervisor/core/log/ascii.h"
#include "supervisor/core/log/line_cleaner.h"

namespace berth::core {
namespace {

constexpr std::array<std::string_view, 15> kLevels = {
    "trace", "debug", "verbose", "info", "information", "notice", "warn",  "warning",
    "err",   "error", "severe",  "crit", "critical",    "alert",  "fatal",
};
constexpr std::string_view kLevelLetters = "TDVINWECF";
constexpr std::array<std::string_view, 12> kMonths = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
};

// In capitals, or in any case with a colon: "error loading model" is no level and a message.
bool is_level(std::string_view word) {
  const bool colon = word.ends_with(':');
  if (colon) word.remove_suffix(1);
  if (word.size() == 1) return kLevelLetters.find(word.front()) != std::string_view::npos;
  if (!colon && !std::ranges::all_of(word, is_upper)) return false;
  return std::ranges::any_of(
      kLevels, [word](std::string_view level) { return equal_ignoring_case(word, level); });
}

// 2026-11-29, 10:01:40,123, 10:45:47-565763, 2026-11-29T10:01:40.5+01:00, 0.00.147.118, 12.5s
bool is_time(std::string_view word) {
  if (word.ends_with(':') || word.ends_with(',')) word.remove_suffix(1);
  if (word.ends_with("ms")) word.remove_suffix(1);
  if (word.ends_with('Z') || word.ends_with('s') || word.ends_with('m')) word.remove_suffix(1);
  if (word.size() < 3 || !is_digit(word.front()) || !is_digit(word.back())) return false;
  constexpr std::string_view kSeparators = "-:.,/+T";
  bool separated = false;
  for (const char c : word) {
    if (is_digit(c)) continue;
    if (kSeparators.find(c) == std::string_view::npos) return false;
    separated = true;
  }
  return separated;
}

bool is_zone(std::string_view word) {
  if (word == "UTC" || word == "GMT") return true;
  return word.size() >= 5 && word.size() <= 6 && (word[0] == '+' || word[0] == '-') &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return is_digit(c) || c == ':'; });
}

std::string_view first_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) ++end;
  return text.substr(0, end);
}

std::string_view behind_word(std::string_view text, std::string_view word) {
  return without_leading_blanks(text.substr(word.size()));
}

// "Nov 29 10:00:07": the length of the three words, or 0.
std::size_t month_length(std::string_view text) {
  const std::string_view month = first_word(text);
  if (std::ranges::find(kMonths, month) == kMonths.end()) return 0;
  std::string_view rest = behind_word(text, month);
  const std::string_view day = first_word(rest);
  if (day.empty() || day.size() > 2 || !std::ranges::all_of(day, is_digit)) return 0;
  rest = behind_word(rest, day);
  const std::string_view time = first_word(rest);
  if (!is_time(time) || time.find(':') == std::string_view::npos) return 0;
  return static_cast<std::size_t>(time.data() - text.data()) + time.size();
}

// Length of the bracketed group that `text` begins with, or 0. Groups may stand within groups.
std::size_t group_length(std::string_view text, char open, char close) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at + 1;
  }
  return 0;
}

// Length of the part that `text`, which is not empty, begins with, or 0.
std::size_t part_length(std::string_view text, bool behind_time) {
  const char first = text.front();
  if (first == '[') return group_length(text, '[', ']');
  if (first == '(') {
    const std::size_t length = group_length(text, '(', ')');
    const bool process = text.substr(0, length).find("pid=") != std::string_view::npos;
    return process ? length : 0;
  }
  if (is_digit(first)) {
    const std::string_view word = first_word(text);
    return is_time(word) ? word.size() : 0;
  }
  const std::string_view word = first_word(text);
  // No part is longer, and most first words of a line are none.
  constexpr std::size_t kLongestWord = 13;
  if (word.size() > kLongestWord) return 0;
  if (behind_time && is_zone(word)) return word.size();
  if (is_level(word)) return word.size();
  return month_length(text);
}

}  // namespace

std::size_t logger_prefix_length(std::string_view line) {
  if (is_indented(line)) return 0;
  std::size_t at = 0;
  bool behind_time = false;
  while (at < line.size()) {
    const std::string_view rest = line.substr(at);
    const std::size_t length = part_length(rest, behind_time);
    if (length == 0 || length >= rest.size() || !is_blank(rest[length])) break;
    behind_time = is_digit(rest.front());
    const std::string_view behind = without_leading_blanks(rest.substr(length));
    at = line.size() - behind.size();
  }
  return at;
}

}  // namespace berth::core
