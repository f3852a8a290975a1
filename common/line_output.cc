#include "common/line_output.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <ctime>
#include <limits>

namespace berth {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t now_ns() {
  std::timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

LineOutput::LineOutput(int fd)
    : fd_(fd), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), deadline_ns_(kNever) {}

void LineOutput::give_up_at(SteadyTime deadline) {
  deadline_ns_.store(deadline.time_since_epoch().count());
  const std::uint64_t one = 1;
  // Fails only where the counter is full, and then it wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

LineOutput::Wait LineOutput::wait_writable() {
  while (true) {
    const std::int64_t deadline = deadline_ns_.load();
    int timeout_ms = -1;
    if (deadline != kNever) {
      const std::int64_t left_ms = (deadline - now_ns() + 999'999) / 1'000'000;
      timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, INT_MAX));
    }
    std::array<pollfd, 2> waited = {pollfd{fd_, POLLOUT, 0}, pollfd{wake_.get(), POLLIN, 0}};
    // Once there is a deadline the wake-up has done its work.
    const nfds_t count = deadline == kNever ? 2 : 1;
    const int ready = ::poll(waited.data(), count, timeout_ms);
    // Errors and a closed other end show in the write.
    if (ready > 0 && waited[0].revents != 0) return Wait::kReady;
    if (ready == 0) return Wait::kGaveUp;
    if (ready < 0 && errno != EINTR) return Wait::kGaveUp;
  }
}

bool LineOutput::write_line(std::string_view line) {
  if (gone_) return false;
  // What is left of a line that was cut must not swallow the next one's beginning.
  pending_.assign(cut_ ? "\n" : "");
  pending_ += line;
  pending_ += '\n';
  std::string_view rest = pending_;
  while (!rest.empty()) {
    if (wait_writable() == Wait::kGaveUp) break;
    // A pipe that polls as writable takes so much without blocking.
    const ssize_t written = ::write(fd_, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    const bool again = errno == EINTR || errno == EAGAIN;
    if (again && now_ns() < deadline_ns_.load()) continue;
    gone_ = errno == EPIPE || errno == EBADF;
    break;
  }
  const bool whole = rest.empty();
  cut_ = whole ? false : cut_ || rest.size() < pending_.size();
  return whole;
}

}  // namespace berth
