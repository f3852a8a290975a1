#include <unistd.h>

#include <langinfo.h>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "supervisor/cli/app.h"
#include "supervisor/cli/interrupts.h"

namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  if (value == nullptr) return std::nullopt;
  return value;
}

std::string own_path() {
  std::array<char, 4096> buffer{};
  const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

// The line editor shows characters by the locale; everything here is UTF-8.
void set_locale() {
  // NOLINTBEGIN(concurrency-mt-unsafe): there is one thread yet
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
  // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace

int main(int argc, char** argv) {
  set_locale();
  berth::cli::FdOutput out(STDOUT_FILENO);
  berth::cli::FdOutput err(STDERR_FILENO);
  berth::cli::SignalInterrupts interrupts;
  berth::cli::Environment environment{
      variable,
      out,
      err,
      STDIN_FILENO,
      ::isatty(STDIN_FILENO) == 1,
      [] {
        const int columns = berth::cli::terminal_columns(STDOUT_FILENO);
        return columns > 0 ? columns : berth::cli::terminal_columns(STDERR_FILENO);
      },
      berth::cli::system_wall_now,
      berth::cli::system_now,
      interrupts,
      own_path()};
  int code = static_cast<int>(berth::cli::ExitCode::kNo);
  try {
    code = static_cast<int>(
        berth::cli::run(std::vector<std::string>(argv + 1, argv + argc), environment));
  } catch (const std::exception& problem) {
    err.write("berth: internal error: " + std::string(problem.what()) + "\n");
  }
  if (code == static_cast<int>(berth::cli::ExitCode::kInterrupted)) {
    berth::cli::end_by_signal(interrupts.caught_signal());
  }
  // Without the destructors of the RPC library, which wait for its threads: nothing is left to do.
  std::_Exit(code);
}
