#pragma once

#include <string>
#include <string_view>

namespace berth::process {

// What a terminal would show of one line of a log (without its LF): escape sequences removed
// whole, and only the part after the last CR. Other control characters stay. Any bytes.
std::string terminal_line(std::string_view raw);

}  // namespace berth::process
