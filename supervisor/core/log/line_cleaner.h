#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::core {

// The longest line that is looked at, without its LF (L11, D2). A longer one matches nothing.
inline constexpr std::size_t kLongestLogLine = 65536;

// Tab or space.
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// Whether the line is not empty and begins with a blank.
constexpr bool is_indented(std::string_view line) {
  return !line.empty() && is_blank(line.front());
}

std::string_view without_trailing_blanks(std::string_view text);
std::string_view without_leading_blanks(std::string_view text);

// A line of a log (without its LF) in the form in which everything looks at it (D1): escape
// sequences removed whole, only the part after the last CR, nothing malformed or unprintable, no
// blanks at the end. Tabs stay. The view is of `raw` where nothing had to be removed inside it,
// else of `scratch`.
std::string_view clean_line(std::string_view raw, std::string& scratch);

}  // namespace berth::core
