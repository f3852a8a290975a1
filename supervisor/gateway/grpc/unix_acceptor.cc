#include "supervisor/gateway/grpc/unix_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

namespace berth::gateway {
namespace {

constexpr int kBacklog = 1024;
std::string errno_text(int error) {
  return std::system_category().message(error);
}

// Without descriptors or memory a connection stays where it is, and would be reported again at
// once.
constexpr auto kPauseWithoutMeans = std::chrono::milliseconds(100);

tl::unexpected<Error> cannot_listen(const std::string& path, int error) {
  return fail(Reason::kInternal, "The socket " + path + " cannot be made: " + errno_text(error) +
                                     ". Check that its directory can be written.");
}

// 0: there is no such descriptor.
ino_t inode_of(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
}

Result<UniqueFd> listen_on(const std::string& path, mode_t mode) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return cannot_listen(path, ENAMETOOLONG);
  std::memcpy(&address.sun_path[0], path.c_str(), path.size());
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return cannot_listen(path, errno);
  // bind() makes the file with the mode of the socket, less the umask.
  constexpr mode_t kOwn = S_IRUSR | S_IWUSR;
  // The sockets API takes every family's address by this type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::fchmod(listener.get(), kOwn) != 0 || ::bind(listener.get(), generic, sizeof address) != 0 ||
      ::listen(listener.get(), kBacklog) != 0 || ::chmod(path.c_str(), mode) != 0) {
    return cannot_listen(path, errno);
  }
  return listener;
}

}  // namespace

Result<SocketPeer> peer_of(int connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return fail(Reason::kInternal, "SO_PEERCRED: " + errno_text(errno));
  }
  SocketPeer peer{credentials.uid, {}};
  constexpr std::size_t kUsual = 32;
  peer.groups.resize(kUsual);
  for (;;) {
    socklen_t bytes = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    const int got = ::getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &bytes);
    // ERANGE: `bytes` says how many there are.
    if (got != 0 && errno != ERANGE) {
      return fail(Reason::kInternal, "SO_PEERGROUPS: " + errno_text(errno));
    }
    peer.groups.resize(bytes / sizeof(gid_t));
    if (got == 0) break;
  }
  peer.groups.push_back(credentials.gid);
  return peer;
}

Result<std::unique_ptr<UnixAcceptor>> UnixAcceptor::listen(Options options) {
  std::unique_ptr<UnixAcceptor> made(new UnixAcceptor(std::move(options)));
  if (Status opened = made->open(); !opened) return fail(opened.error());
  return made;
}

Status UnixAcceptor::open() {
  for (const std::string& path : options_.paths) {
    Result<UniqueFd> listener = listen_on(path, options_.mode);
    if (!listener) return fail(listener.error());
    listeners_.push_back(*std::move(listener));
  }
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) return fail(Reason::kInternal, "eventfd: " + errno_text(errno));
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return fail(Reason::kInternal, std::string("No thread for the sockets: ") + error.what());
  }
  return {};
}

UnixAcceptor::~UnixAcceptor() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    const ssize_t written = ::write(stop_.get(), &one, sizeof one);
    static_cast<void>(written);  // its counter cannot be full
    thread_.join();
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) ::unlink(options_.paths[i].c_str());
}

void UnixAcceptor::run() {
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

void UnixAcceptor::accept_from(int listener) {
  UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      pollfd stop{stop_.get(), POLLIN, 0};
      ::poll(&stop, 1, static_cast<int>(kPauseWithoutMeans.count()));
    }
    return;
  }
  const Result<SocketPeer> peer = peer_of(connection.get());
  // Without it nobody knows what the other end may do: the connection ends.
  if (!peer) return;
  const bool trusted = options_.trusted && options_.trusted(*peer);
  if (!has_room(peer->uid, trusted)) return;
  given_.push_back({connection.get(), inode_of(connection.get()), peer->uid, trusted});
  options_.on_connection(std::move(connection), *peer);
}

bool UnixAcceptor::has_room(uid_t uid, bool trusted) {
  const auto fits = [&] {
    if (given_.size() >= options_.most) return false;
    if (trusted) return true;
    std::size_t untrusted = 0;
    std::size_t same = 0;
    for (const Given& one : given_) {
      if (one.trusted) continue;
      ++untrusted;
      if (one.uid == uid) ++same;
    }
    return untrusted < options_.most_untrusted && same < options_.most_of_user;
  };
  if (fits()) return true;
  std::erase_if(given_, [](const Given& one) { return inode_of(one.fd) != one.inode; });
  return fits();
}

}  // namespace berth::gateway
