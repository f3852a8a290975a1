#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

// Byte offset of the first byte that is not part of well-formed UTF-8 (no overlong forms, no
// surrogates, at most U+10FFFF), or nothing where all is well-formed.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// Length of the longest prefix of `text` that has at most `limit` bytes and cuts no character.
std::size_t utf8_prefix(std::string_view text, std::size_t limit);

// Length of the longest prefix that ends with a whole character: what may be sent of a text that
// is still growing. Bytes that can never become a character count as whole.
std::size_t utf8_complete_prefix(std::string_view text);

// Takes one character off the front of well-formed UTF-8 that is not empty; returns its code point.
std::uint32_t take_code_point(std::string_view& text);

// Appends a code point of at most U+10FFFF; the caller sees to it that it is no surrogate.
void append_utf8(std::string& out, std::uint32_t code_point);

// For one line of a terminal or a log: control and unprintable characters (C0, C1, bidirectional
// and zero-width ones, U+00AD, U+FEFF, non-characters) and malformed bytes dropped, tabs and line
// feeds to blanks, at most `limit` bytes, cut at a character. The set is that of L16.
std::string printable_line(std::string_view text, std::size_t limit);

// With ASCII's capitals as small letters.
std::string lowered(std::string_view text);

// The up to `count` names of `names` that are nearest to `wanted` (edit distance with
// transposition, ignoring case; common prefixes count as near), nearest first; none that are far
// off.
std::vector<std::string> nearest_names(std::string_view wanted,
                                       const std::vector<std::string>& names,
                                       std::size_t count = 3);

// "a, b and c"
std::string join_names(const std::vector<std::string>& names);

}  // namespace berth
