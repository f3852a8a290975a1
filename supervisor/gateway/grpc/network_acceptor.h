#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "supervisor/gateway/grpc/accept_loop.h"
#include "supervisor/gateway/grpc/given_connections.h"

namespace berth::gateway {

// Who is at the other end of a network connection.
struct NetworkPeer {
  // Who is counted as one: an IPv4 address (also one that came mapped), or the first 64 bits of an
  // IPv6 one, as one host has that many. Bytes.
  std::string network;
  bool loopback = false;
};
NetworkPeer network_peer_of(const sockaddr_storage& address);

// Where one can listen.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

// Takes connections from the network, on a thread of its own. Destroying it ends that.
class NetworkAcceptor {
 public:
  struct Options {
    std::vector<std::string> addresses;  // "HOST:PORT", checked by the configuration; port 0: any
    // On the acceptor's thread, one call at a time.
    std::function<void(UniqueFd connection)> on_connection;
    // What a host's name stands for, at that port. Errors: their message says why. Empty: as the
    // system resolves it.
    std::function<Result<std::vector<SocketAddress>>(const std::string& host,
                                                     const std::string& port)>
        resolve{};
    // Connections at once, beyond which a new one is closed: those from elsewhere, and, so that
    // neither is in the other's way, those of this machine.
    ConnectionBounds bounds{.most = 512, .most_untrusted = 512, .most_of_owner = 256};
    ConnectionBounds local_bounds{.most = 256, .most_untrusted = 256, .most_of_owner = 256};
  };

  // Listens; nobody is taken before start(). Errors: kConflict with the address that cannot be
  // used.
  static Result<std::unique_ptr<NetworkAcceptor>> listen(Options options);
  // Once. Errors: kInternal.
  Status start();

  // "HOST:PORT" with the ports that were taken, in the order of the options.
  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  explicit NetworkAcceptor(Options options)
      : options_(std::move(options)), given_(options_.bounds), local_(options_.local_bounds) {}

  // For all that the name stands for.
  Status listen_on(const std::string& address);
  void take(UniqueFd connection);

  const Options options_;
  std::vector<std::string> addresses_;
  std::vector<UniqueFd> listeners_;
  GivenConnections given_;  // the loop's thread's, as the next
  GivenConnections local_;
  std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace berth::gateway
