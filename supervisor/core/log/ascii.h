#pragma once

#include <algorithm>
#include <string_view>

namespace berth::core {

// ASCII only, whatever the locale.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
constexpr char to_lower(char c) {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_letter(char c) {
  return to_lower(c) >= 'a' && to_lower(c) <= 'z';
}
constexpr bool is_word_character(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

// `lowered` is in lower case.
inline bool equal_ignoring_case(std::string_view text, std::string_view lowered) {
  return std::ranges::equal(text, lowered, [](char a, char b) { return to_lower(a) == b; });
}
inline bool contains_ignoring_case(std::string_view text, std::string_view lowered) {
  return lowered.empty() ||
         std::search(text.begin(), text.end(), lowered.begin(), lowered.end(),
                     [](char a, char b) { return to_lower(a) == b; }) != text.end();
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

constexpr bool begins_with_any_of(std::string_view text, std::string_view characters) {
  return !text.empty() && characters.find(text.front()) != std::string_view::npos;
}

// Drops `prefix` from the front of `text`, if it is there.
constexpr bool drop(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace berth::core
