#pragma once

#include <optional>
#include <string>
#include <string_view>

// What berth-shim and its supervisor say to each other. Linked into both.
namespace berth::process::shim {

// The first line that berth-shim writes to its notify pipe (fd 3): the program runs, or it could
// not be executed. Nothing of the program itself gets at that pipe.
inline constexpr std::string_view kStarted = "started";

// "failed ERRNO\n" for a program that could not be executed.
std::string failed_line(int error);

// The errno of such a line without its '\n'; absent: it is another line.
std::optional<int> error_of(std::string_view line);

}  // namespace berth::process::shim
