#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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
  virtual ~PeerServer() = default;  // ends every call, and waits until they are over

  virtual void take(UniqueFd connection) = 0;
  // When it last began a call, or took a connection.
  [[nodiscard]] virtual Time last_used() const = 0;
  // Whether a call runs.
  [[nodiscard]] virtual bool busy() const = 0;
  // As GrpcServer::shutdown().
  virtual void shutdown(std::chrono::system_clock::time_point until) = 0;
};

// The servers of those who come by Unix socket, each made for its peer's first connection. One
// thread at a time; those that end do so on a thread of its own, so that nobody waits for them.
class PeerServers {
 public:
  // Null: none can be made now.
  using Make = std::function<std::unique_ptr<PeerServer>(const Peer&)>;

  // At most so many for admins, and as many for clients, who thus never are in an admin's way.
  PeerServers(std::size_t most, Make make);
  PeerServers(const PeerServers&) = delete;
  PeerServers& operator=(const PeerServers&) = delete;
  ~PeerServers();

  // Gives the connection to the server of that peer. Where there are as many of his kind as may be,
  // the one without calls that was used least recently ends; where each has calls, or too many are
  // still ending, the connection is closed.
  void take(UniqueFd connection, const Peer& peer);
  // Of all, side by side.
  void shutdown(std::chrono::system_clock::time_point until);
  [[nodiscard]] std::size_t size() const { return servers_.size(); }

 private:
  using Key = std::pair<std::uint32_t, bool>;  // uid, admin

  // Whether there is room for one more.
  bool make_room(bool admin);
  // Ends what it is given, until nothing more will be.
  void run_endings();

  const std::size_t most_;
  const Make make_;
  std::map<Key, std::unique_ptr<PeerServer>> servers_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<PeerServer>> to_end_;
  std::size_t ending_ = 0;  // to_end_ and what is just being ended
  bool closed_ = false;
  std::thread endings_;  // uses the others; from the first that ends on
};

}  // namespace berth::gateway
