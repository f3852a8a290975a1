#include "supervisor/gateway/grpc/network_acceptor.h"

#include <netdb.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/loopback.h"

namespace berth::gateway {
namespace {

constexpr int kBacklog = 1024;
// For what was sent to be acknowledged.
constexpr unsigned kLostAfterMs = 20'000;

using Resolved = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error cannot_listen(const std::string& address, const std::string& why) {
  return {Reason::kConflict, "gRPC cannot listen on " + address + ": " + why +
                                 ". Check that nothing else does, and that the address is this "
                                 "machine's."};
}

// The sockets API takes every family's address by this type.
const sockaddr* generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

in_port_t& port_of(sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(address).sin_port;
}

// "[::]" is everybody, by whichever protocol, and "[::ffff:127.0.0.1]" is an IPv4 address.
bool takes_ipv4(const sockaddr_storage& address) {
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&six) || IN6_IS_ADDR_V4MAPPED(&six);
}

// Empty, with errno: it cannot be used. The port that was taken is put into the address.
UniqueFd open_listener(sockaddr_storage& address, socklen_t size) {
  UniqueFd listener(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return {};
  const auto set = [&](int level, int option, int value) {
    return ::setsockopt(listener.get(), level, option, &value, sizeof value) == 0;
  };
  bool usable = set(SOL_SOCKET, SO_REUSEADDR, 1) && set(IPPROTO_TCP, TCP_NODELAY, 1) &&
                set(IPPROTO_TCP, TCP_USER_TIMEOUT, kLostAfterMs);
  if (address.ss_family == AF_INET6) {
    usable = usable && set(IPPROTO_IPV6, IPV6_V6ONLY, takes_ipv4(address) ? 0 : 1);
  }
  usable = usable && ::bind(listener.get(), generic(address), size) == 0 &&
           ::listen(listener.get(), kBacklog) == 0 &&
           ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  return usable ? std::move(listener) : UniqueFd();
}

}  // namespace

NetworkPeer network_peer_of(const sockaddr_storage& address) {
  const auto bytes = [](const void* from, std::size_t count) {
    return std::string(static_cast<const char*>(from), count);
  };
  if (address.ss_family == AF_INET) {
    const in_addr& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {bytes(&four, sizeof four), is_loopback(four)};
  }
  if (address.ss_family != AF_INET6) return {};
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  constexpr std::size_t kMappedAt = 12;
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&six);
  return {mapped ? bytes(&six.s6_addr[kMappedAt], sizeof(in_addr)) : bytes(&six, sizeof six / 2),
          is_loopback(six)};
}

Result<std::unique_ptr<NetworkAcceptor>> NetworkAcceptor::listen(Options options) {
  std::unique_ptr<NetworkAcceptor> made(new NetworkAcceptor(std::move(options)));
  for (const std::string& address : made->options_.addresses) {
    if (Status listening = made->listen_on(address); !listening) return fail(listening.error());
  }
  return made;
}

Status NetworkAcceptor::listen_on(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &list);
  if (failed != 0) return fail(cannot_listen(address, ::gai_strerror(failed)));
  const Resolved resolved(list, &::freeaddrinfo);
  in_port_t port = 0;
  int why = EADDRNOTAVAIL;
  for (const addrinfo* one = resolved.get(); one != nullptr; one = one->ai_next) {
    sockaddr_storage at{};
    std::memcpy(&at, one->ai_addr, one->ai_addrlen);
    if (port != 0) port_of(at) = port;
    UniqueFd listener = open_listener(at, one->ai_addrlen);
    if (listener) {
      port = port_of(at);
      listeners_.push_back(std::move(listener));
      continue;
    }
    why = errno;
    // A name may stand for addresses of a protocol that this machine does not speak.
    if (why != EAFNOSUPPORT && why != EADDRNOTAVAIL) break;
  }
  if (port == 0 || (why != EAFNOSUPPORT && why != EADDRNOTAVAIL)) {
    return fail(cannot_listen(address, errno_text(why)));
  }
  addresses_.push_back(address.substr(0, colon + 1) + std::to_string(ntohs(port)));
  return {};
}

Status NetworkAcceptor::start() {
  auto loop = AcceptLoop::start(std::exchange(listeners_, {}),
                                [this](UniqueFd connection) { take(std::move(connection)); });
  if (!loop) return fail(loop.error());
  loop_ = *std::move(loop);
  return {};
}

void NetworkAcceptor::take(UniqueFd connection) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  if (::getpeername(connection.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) return;
  NetworkPeer peer = network_peer_of(from);
  GivenConnections& given = peer.loopback ? local_ : given_;
  if (!given.add(connection.get(), std::move(peer.network), /*trusted=*/false)) return;
  options_.on_connection(std::move(connection));
}

}  // namespace berth::gateway
