#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "common/fd.h"
#include "supervisor/gateway/auth/authenticator.h"

namespace berth::gateway {

// One gRPC server for the calls of one peer.
class PeerServer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  PeerServer() = default;
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;
  virtual ~PeerServer() = default;  // ends every call

  virtual void take(UniqueFd connection) = 0;
  // When it last began a call, or took a connection.
  [[nodiscard]] virtual Time last_used() const = 0;
  // As GrpcServer::shutdown().
  virtual void shutdown(std::chrono::system_clock::time_point until) = 0;
};

// The servers of those who come by Unix socket, each made for its peer's first connection. One
// thread at a time.
class PeerServers {
 public:
  // Null: none can be made now.
  using Make = std::function<std::unique_ptr<PeerServer>(const Peer&)>;

  PeerServers(std::size_t most, Make make) : most_(most), make_(std::move(make)) {}

  // Gives the connection to the server of that peer. Where there are `most` others, the one that
  // was used least recently ends first, which waits for its calls to notice.
  void take(UniqueFd connection, const Peer& peer);
  void shutdown(std::chrono::system_clock::time_point until);
  [[nodiscard]] std::size_t size() const { return servers_.size(); }

 private:
  using Key = std::pair<std::uint32_t, bool>;  // uid, admin

  const std::size_t most_;
  const Make make_;
  std::map<Key, std::unique_ptr<PeerServer>> servers_;
};

}  // namespace berth::gateway
