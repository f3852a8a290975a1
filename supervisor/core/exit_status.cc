#include "supervisor/core/exit_status.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace berth::core {
namespace {

// Linux's numbers on every architecture that berth is built for. Written out, because
// sigabbrev_np() depends on the C library and <csignal> on the machine that compiles.
constexpr std::array<std::string_view, 32> kSignalNames = {
    "",          "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
    "SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
    "SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS",
};

struct Describe {
  std::string operator()(const Exited& exited) const {
    return "exit " + std::to_string(exited.code);
  }
  std::string operator()(const Signalled& signalled) const {
    return signal_name(signalled.signal) + (signalled.core_dumped ? " (core dumped)" : "");
  }
  std::string operator()(const UnknownExit& /*unknown*/) const { return "exit unknown"; }
};

}  // namespace

std::string signal_name(int signal) {
  const auto index = static_cast<std::size_t>(signal);
  if (signal > 0 && index < kSignalNames.size()) return std::string(kSignalNames.at(index));
  return "signal " + std::to_string(signal);
}

std::string to_string(const ExitStatus& status) {
  return std::visit(Describe{}, status);
}

}  // namespace berth::core
