#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth {

// Sizes as the config writes them: "512MiB", "8GiB", "64KiB", "100B", "1TiB"; also "0".
// Errors: kInvalidArgument with what was expected.
Result<std::uint64_t> parse_bytes(std::string_view text);

// Binary unit, three significant figures: "1.37 GiB", "512 B".
std::string format_bytes(std::uint64_t bytes);

// Durations as the config writes them: "250ms", "30s", "5m", "1h"; also "0" and parts ("1h30m").
// At most 10 years. Errors: kInvalidArgument with what was expected.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// The shortest exact form that parse_duration() takes: "90s", "1h", "250ms".
std::string format_duration(std::chrono::milliseconds duration);

// For people: "850 ms", "12.3 s", "4 min 10 s", "3 h 5 min".
std::string format_duration_human(std::chrono::milliseconds duration);

}  // namespace berth
