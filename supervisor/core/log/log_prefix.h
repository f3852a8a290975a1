#pragma once

#include <cstddef>
#include <string_view>

namespace berth::core {

// Length of the logger prefix (D12) that a line begins with, 0 where there is none: bracketed
// groups, parenthesised ones with "pid=", timestamps, elapsed times, and level words or letters
// ("E", "ERROR:"), each followed by blanks. An indented line has none.
std::size_t logger_prefix_length(std::string_view line);

}  // namespace berth::core
