#include "supervisor/gateway/grpc/network_acceptor.h"

#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "common/errno_text.h"
#include "common/loopback.h"

namespace berth::gateway {
namespace {

constexpr int kBacklog = 1024;
// For what was sent to be acknowledged.
constexpr unsigned kLostAfterMs = 20'000;
// Of a free port at all addresses of a name.
constexpr int kMostTries = 8;

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

Result<std::vector<SocketAddress>> resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (failed != 0) return fail(Reason::kConflict, ::gai_strerror(failed));
  const Resolved resolved(list, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* one = resolved.get(); one != nullptr; one = one->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
  }
  return addresses;
}

// Those of one name, all at one port.
struct Opened {
  std::vector<UniqueFd> listeners;
  bool any_port = false;
  in_port_t port = 0;
  int failed = 0;  // an errno
};

Opened open_all(const std::vector<SocketAddress>& addresses) {
  Opened opened;
  opened.failed = EADDRNOTAVAIL;
  for (auto one = addresses.begin(); one != addresses.end(); ++one) {
    // A resolver says it twice where a file of hosts does.
    const auto same = [one](const SocketAddress& earlier) {
      return earlier.size == one->size && std::memcmp(&earlier.bytes, &one->bytes, one->size) == 0;
    };
    if (std::any_of(addresses.begin(), one, same)) continue;
    sockaddr_storage at = one->bytes;
    opened.any_port = port_of(at) == 0;
    if (opened.port != 0) port_of(at) = opened.port;
    UniqueFd listener = open_listener(at, one->size);
    if (listener) {
      opened.port = port_of(at);
      opened.listeners.push_back(std::move(listener));
      continue;
    }
    opened.failed = errno;
    // A name may stand for addresses of a protocol that this machine does not speak.
    if (opened.failed != EAFNOSUPPORT && opened.failed != EADDRNOTAVAIL) return opened;
  }
  if (!opened.listeners.empty()) opened.failed = 0;
  return opened;
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
  const std::string port = address.substr(colon + 1);
  for (int tries = kMostTries;; --tries) {
    Result<std::vector<SocketAddress>> resolved =
        options_.resolve ? options_.resolve(host, port) : resolve(host, port);
    if (!resolved) return fail(cannot_listen(address, resolved.error().message));
    Opened opened = open_all(*resolved);
    if (opened.failed == 0) {
      std::ranges::move(opened.listeners, std::back_inserter(listeners_));
      addresses_.push_back(address.substr(0, colon + 1) + std::to_string(ntohs(opened.port)));
      return {};
    }
    // The port that the first of them got another program has at the next.
    const bool other_port_may_do = opened.any_port && opened.failed == EADDRINUSE;
    if (!other_port_may_do || tries == 1) {
      return fail(cannot_listen(address, errno_text(opened.failed)));
    }
  }
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
