#include "supervisor/gateway/grpc/peer_servers.h"

#include <future>
#include <system_error>
#include <utility>

namespace berth::gateway {
namespace {

// Servers that end at once. Those have no calls, so that each takes a moment.
constexpr std::size_t kMostEnding = 16;

}  // namespace

PeerServers::PeerServers(std::size_t most, Make make) : most_(most), make_(std::move(make)) {}

PeerServers::~PeerServers() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (endings_.joinable()) endings_.join();
}

void PeerServers::take(UniqueFd connection, const Peer& peer) {
  const Key key{peer.uid.value_or(0), peer.admin};
  auto found = servers_.find(key);
  if (found == servers_.end()) {
    if (!make_room(peer.admin)) return;
    std::unique_ptr<PeerServer> made = make_(peer);
    if (!made) return;
    found = servers_.emplace(key, std::move(made)).first;
  }
  found->second->take(std::move(connection));
}

bool PeerServers::make_room(bool admin) {
  std::size_t of_kind = 0;
  auto idle = servers_.end();
  for (auto it = servers_.begin(); it != servers_.end(); ++it) {
    if (it->first.second != admin) continue;
    ++of_kind;
    if (it->second->busy()) continue;
    if (idle == servers_.end() || it->second->last_used() < idle->second->last_used()) idle = it;
  }
  if (of_kind < most_) return true;
  if (idle == servers_.end()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ >= kMostEnding) return false;
    try {
      if (!endings_.joinable()) endings_ = std::thread([this] { run_endings(); });
    } catch (const std::system_error&) {
      return false;
    }
    to_end_.push_back(std::move(idle->second));
    ++ending_;
  }
  changed_.notify_all();
  servers_.erase(idle);
  return true;
}

void PeerServers::run_endings() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !to_end_.empty(); });
    if (to_end_.empty()) return;
    std::vector<std::unique_ptr<PeerServer>> ends = std::exchange(to_end_, {});
    lock.unlock();
    const std::size_t count = ends.size();
    ends.clear();
    lock.lock();
    ending_ -= count;
  }
}

void PeerServers::shutdown(std::chrono::system_clock::time_point until) {
  std::vector<std::future<void>> ends;
  for (const auto& [key, server] : servers_) {
    // Without a thread it happens in get().
    ends.push_back(std::async([one = server.get(), until] { one->shutdown(until); }));
  }
  for (std::future<void>& end : ends) end.get();
}

}  // namespace berth::gateway
