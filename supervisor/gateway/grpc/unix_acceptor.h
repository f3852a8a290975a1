#pragma once

#include <sys/types.h>

#include <cstddef>
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

// Who is at the other end of a connection by a Unix socket, as the kernel knows it from the moment
// of its connect().
struct SocketPeer {
  uid_t uid = 0;
  std::vector<gid_t> groups;  // all of them, also the primary one
};
// Errors: kInternal.
Result<SocketPeer> peer_of(int connection);

// Takes connections from Unix sockets, on a thread of its own. Destroying it ends that, and removes
// the sockets. `on_connection` is called on that thread, one call at a time.
class UnixAcceptor {
 public:
  using OnConnection = std::function<void(UniqueFd connection, const SocketPeer& peer)>;
  struct Options {
    std::vector<std::string> paths;  // made ready by process::prepare_socket_path()
    mode_t mode = 0600;              // who may connect
    OnConnection on_connection;
    // Whose connections the others' never keep out. On its thread. Absent: nobody's.
    std::function<bool(const SocketPeer& peer)> trusted{};
    // Beyond them a new connection is closed. One of each user's is never kept out by the others',
    // who are told apart up to GrpcServer::kMostPeers.
    ConnectionBounds bounds{
        .most = 832, .most_untrusted = 768, .most_of_owner = 256, .own = 8, .owners = 64};
  };

  // Listens. Nobody but berth's own user can connect before the mode is set. Errors:
  // kInvalidArgument, kInternal with the socket.
  static Result<std::unique_ptr<UnixAcceptor>> listen(Options options);

  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;
  ~UnixAcceptor();

 private:
  explicit UnixAcceptor(Options options) : options_(std::move(options)), given_(options_.bounds) {}

  Status open();
  void take(UniqueFd connection);

  const Options options_;
  std::size_t bound_ = 0;   // so many of the paths are sockets of ours
  GivenConnections given_;  // the loop's thread's
  std::unique_ptr<AcceptLoop> loop_;
};

}  // namespace berth::gateway
