#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace berth::cli {

// Text that others wrote, made harmless for a terminal: of the control characters (C0, DEL, C1)
// only newline and tab pass; a carriage return is dropped, the others become visible signs, so that
// an escape sequence is seen and not obeyed. Malformed UTF-8 becomes U+FFFD. `text` holds whole
// characters.
std::string harmless(std::string_view text);

// JSON for a terminal: C1 control characters, which JSON leaves as they are, are written as
// escapes.
std::string harmless_json(std::string_view json);

// Columns that well-formed `text` takes on a terminal: wide East Asian characters and emoji 2,
// combining ones 0.
std::size_t display_width(std::string_view text);

// The longest beginning of `text` that takes at most `columns`; where something is cut, it ends
// with "…".
std::string fit(std::string_view text, std::size_t columns);

// `text` in lines of at most `columns` (at least 1), broken at blanks where possible. Newlines in
// `text` are kept.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

// RFC 3339: "2026-01-02T03:04:05Z", with fraction and offset, a blank for the T. Errors:
// kInvalidArgument with what was expected.
Result<WallTime> parse_rfc3339(std::string_view text);

// A moment in the past: a duration before `now` ("10m") or RFC 3339. Errors: kInvalidArgument.
Result<WallTime> parse_since(std::string_view text, WallTime now);

// Parameters of a model: "7.62B", "494M", "12.3K".
std::string format_count(std::uint64_t count);

// For people who wait: "12 s", "4 min 10 s"; whole seconds, at least one.
std::string format_seconds(std::chrono::milliseconds duration);

// "1 model", "3 models"
std::string counted(std::uint64_t count, std::string_view noun);

}  // namespace berth::cli
