#include "supervisor/gateway/grpc/accept_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <system_error>

#include "common/errno_text.h"

namespace berth::gateway {
namespace {

// Without descriptors or memory a connection stays where it is, and would be reported again at
// once.
constexpr auto kPauseWithoutMeans = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<AcceptLoop>> AcceptLoop::start(std::vector<UniqueFd> listeners,
                                                      OnAccept on_accept) {
  std::unique_ptr<AcceptLoop> made(new AcceptLoop(std::move(listeners), std::move(on_accept)));
  made->stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->stop_) return fail(Reason::kInternal, "eventfd: " + errno_text(errno));
  try {
    made->thread_ = std::thread([loop = made.get()] { loop->run(); });
  } catch (const std::system_error& error) {
    return fail(Reason::kInternal, std::string("No thread for the sockets: ") + error.what());
  }
  return made;
}

AcceptLoop::~AcceptLoop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  static_cast<void>(written);  // its counter cannot be full
  thread_.join();
}

void AcceptLoop::run() {
  // Signals are for the core strand.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::vector<pollfd> waited{{stop_.get(), POLLIN, 0}};
  for (const UniqueFd& listener : listeners_) waited.push_back({listener.get(), POLLIN, 0});
  for (;;) {
    if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) return;
    if (waited.front().revents != 0) return;
    for (std::size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0) accept_from(waited[i].fd);
    }
  }
}

void AcceptLoop::accept_from(int listener) {
  UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) return on_accept_(std::move(connection));
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    pollfd stop{stop_.get(), POLLIN, 0};
    ::poll(&stop, 1, static_cast<int>(kPauseWithoutMeans.count()));
  }
}

}  // namespace berth::gateway
