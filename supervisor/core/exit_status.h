#pragma once

#include <string>
#include <variant>

namespace berth::core {

struct Exited {
  int code = 0;  // 0 to 255
  bool operator==(const Exited&) const = default;
};
struct Signalled {
  int signal = 0;  // 1 to 64
  bool core_dumped = false;
  bool operator==(const Signalled&) const = default;
};
// The process is gone, but its status was not ours to read.
struct UnknownExit {
  bool operator==(const UnknownExit&) const = default;
};
// How a process ended, as the kernel says.
using ExitStatus = std::variant<Exited, Signalled, UnknownExit>;

// "exit 1", "SIGSEGV (core dumped)", "exit unknown"
std::string to_string(const ExitStatus& status);

// "SIGSEGV"; "signal 44" where it has no name.
std::string signal_name(int signal);

}  // namespace berth::core
