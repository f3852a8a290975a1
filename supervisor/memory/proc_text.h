#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace berth::memory {

// The number at the front of `text`, blanks and tabs before it skipped.
inline std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

// What stands behind `key` and `mark` on the line that begins so.
inline std::optional<std::string_view> line_of(std::string_view text, std::string_view key,
                                               char mark) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != mark) continue;
    return line.substr(key.size() + 1);
  }
  return std::nullopt;
}

// The bytes of a line `Key:   123 kB`.
inline std::optional<std::uint64_t> kib_field(std::string_view text, std::string_view key) {
  constexpr std::uint64_t kKib = 1024;
  const auto line = line_of(text, key, ':');
  const auto number = line ? leading_number(*line) : std::nullopt;
  if (!number || *number > UINT64_MAX / kKib) return std::nullopt;
  return *number * kKib;
}

}  // namespace berth::memory
