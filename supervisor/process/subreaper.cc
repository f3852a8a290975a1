#include "supervisor/process/subreaper.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "common/errno_text.h"
#include "supervisor/process/proc.h"

namespace berth::process {
namespace {

using boost::asio::posix::stream_descriptor;

// Until orphans that were left alone are looked at again: they may leave their group, and nothing
// tells of it.
constexpr std::chrono::seconds kLookAgain{1};

// Where the signal handler writes; -1 while there is no Subreaper.
std::atomic<int> wake_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void on_child_signal(int /*signal*/) {
  const int kept = errno;
  const std::uint64_t one = 1;
  const int fd = wake_fd.load(std::memory_order_relaxed);
  if (fd >= 0 && ::write(fd, &one, sizeof one) < 0) {
    // Full: then a wake is due anyway.
  }
  errno = kept;
}

Status set_child_handler(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
  if (::sigaction(SIGCHLD, &action, nullptr) != 0) {
    return fail(Reason::kInternal, "sigaction(SIGCHLD): " + errno_text(errno));
  }
  return {};
}

}  // namespace

class Subreaper::Impl : public std::enable_shared_from_this<Subreaper::Impl> {
 public:
  Impl(boost::asio::io_context& io, int event_fd, std::function<bool(pid_t)> is_ours)
      : event_(io, event_fd), look_(io), is_ours_(std::move(is_ours)) {}

  [[nodiscard]] int event_fd() { return event_.native_handle(); }

  void wait() {
    event_.async_wait(stream_descriptor::wait_read,
                      [self = shared_from_this()](const boost::system::error_code& error) {
                        if (error || self->stopped_) return;
                        self->on_wake();
                      });
  }
  void stop() {
    stopped_ = true;
    boost::system::error_code ignored;
    event_.close(ignored);
    look_.cancel();
  }

  void sweep() {
    bool left_alone = false;
    for (const pid_t child : children_of(::getpid())) {
      if (is_ours_(child)) continue;
      const auto stat = read_stat(child);
      if (!stat) continue;
      const bool ended = stat->state == 'Z' || stat->state == 'X';
      if (!ended) {
        if (is_ours_(stat->group)) {
          left_alone = true;
          continue;
        }
        // Our child, reaped by nobody else: its number cannot have been given away.
        ::kill(child, SIGKILL);
      }
      siginfo_t info{};
      ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG);
    }
    if (left_alone) look_again();
  }

 private:
  void look_again() {
    look_.expires_after(kLookAgain);
    look_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->stopped_) self->sweep();
    });
  }

  void on_wake() {
    std::uint64_t count = 0;
    if (::read(event_.native_handle(), &count, sizeof count) < 0) {
      // Nothing was there: a wake too many does no harm.
    }
    sweep();
    wait();
  }

  stream_descriptor event_;
  boost::asio::steady_timer look_;
  std::function<bool(pid_t)> is_ours_;
  bool stopped_ = false;
};

Subreaper::Subreaper(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Subreaper>> Subreaper::start(boost::asio::io_context& io,
                                                    std::function<bool(pid_t)> is_ours) {
  const int event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd < 0) return fail(Reason::kInternal, "eventfd: " + errno_text(errno));
  auto impl = std::make_shared<Impl>(io, event_fd, std::move(is_ours));
  int none = -1;
  if (!wake_fd.compare_exchange_strong(none, impl->event_fd())) {
    return fail(Reason::kInternal, "There is a subreaper in this program already.");
  }
  // From here on the destructor undoes what was done.
  std::unique_ptr<Subreaper> reaper(new Subreaper(std::move(impl)));
  if (auto set = set_child_handler(&on_child_signal); !set) return fail(std::move(set).error());
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    return fail(Reason::kInternal, "prctl(PR_SET_CHILD_SUBREAPER): " + errno_text(errno));
  }
  reaper->impl_->wait();
  return reaper;
}

Subreaper::~Subreaper() {
  if (!set_child_handler(SIG_DFL)) {
    // Cannot happen: the signal and the handler are valid.
  }
  wake_fd.store(-1);
  impl_->stop();
}

void Subreaper::sweep() {
  impl_->sweep();
}

}  // namespace berth::process
