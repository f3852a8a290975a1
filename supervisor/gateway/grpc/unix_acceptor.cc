#include "supervisor/gateway/grpc/unix_acceptor.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/errno_text.h"

namespace berth::gateway {
namespace {

constexpr int kBacklog = 1024;

tl::unexpected<Error> cannot_listen(const std::string& path, int error) {
  return fail(Reason::kInternal, "The socket " + path + " cannot be made: " + errno_text(error) +
                                     ". Check that its directory can be written.");
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
  std::vector<UniqueFd> listeners;
  for (const std::string& path : options_.paths) {
    Result<UniqueFd> listener = listen_on(path, options_.mode);
    if (!listener) return fail(listener.error());
    listeners.push_back(*std::move(listener));
    ++bound_;
  }
  auto loop = AcceptLoop::start(std::move(listeners),
                                [this](UniqueFd connection) { take(std::move(connection)); });
  if (!loop) return fail(loop.error());
  loop_ = *std::move(loop);
  return {};
}

UnixAcceptor::~UnixAcceptor() {
  loop_.reset();
  for (std::size_t i = 0; i < bound_; ++i) ::unlink(options_.paths[i].c_str());
}

void UnixAcceptor::take(UniqueFd connection) {
  const Result<SocketPeer> peer = peer_of(connection.get());
  // Without it nobody knows what the other end may do: the connection ends.
  if (!peer) return;
  const bool trusted = options_.trusted && options_.trusted(*peer);
  if (!given_.add(connection.get(), std::to_string(peer->uid), trusted)) return;
  options_.on_connection(std::move(connection), *peer);
}

}  // namespace berth::gateway
