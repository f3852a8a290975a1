#include "supervisor/gateway/grpc/peer_servers.h"

#include <algorithm>

namespace berth::gateway {

void PeerServers::take(UniqueFd connection, const Peer& peer) {
  const Key key{peer.uid.value_or(0), peer.admin};
  auto found = servers_.find(key);
  if (found == servers_.end()) {
    if (servers_.size() >= most_) {
      servers_.erase(std::ranges::min_element(
          servers_, {}, [](const auto& one) { return one.second->last_used(); }));
    }
    std::unique_ptr<PeerServer> made = make_(peer);
    if (!made) return;
    found = servers_.emplace(key, std::move(made)).first;
  }
  found->second->take(std::move(connection));
}

void PeerServers::shutdown(std::chrono::system_clock::time_point until) {
  for (const auto& [key, server] : servers_) server->shutdown(until);
}

}  // namespace berth::gateway
