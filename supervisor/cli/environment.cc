#include "supervisor/cli/environment.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "common/errno_text.h"
#include "common/units.h"

namespace berth::cli {

FdOutput::FdOutput(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {}

void FdOutput::write(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

std::optional<std::string> FdOutput::failed() const {
  if (error_ == 0) return std::nullopt;
  return errno_text(error_);
}

std::optional<std::string> Environment::non_empty(const char* name) const {
  auto value = variable(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

bool Environment::colours(const Output& output) const {
  return redrawable(output) && !non_empty("NO_COLOR");
}

bool Environment::redrawable(const Output& output) const {
  if (!output.terminal()) return false;
  const auto term = variable("TERM");
  return term && !term->empty() && *term != "dumb";
}

int terminal_columns(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

WallTime system_wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

SteadyTime system_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

ReadAll read_all(int fd, std::size_t limit) {
  ReadAll result;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count == 0) return result;
    if (count < 0) {
      if (errno == EINTR) continue;
      result.error = errno_text(errno);
      return result;
    }
    if (result.text.size() + static_cast<std::size_t>(count) > limit) {
      result.error = "it is larger than " + format_bytes(limit);
      return result;
    }
    result.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace berth::cli
