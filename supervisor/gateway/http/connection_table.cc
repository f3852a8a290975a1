#include "supervisor/gateway/http/connection_table.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace berth::gateway {

void ConnectionTable::add(const std::shared_ptr<Connection>& connection) {
  connections_.emplace(connection.get(), connection);
  ++counts_[connection->peer().address];
}

void ConnectionTable::remove(Connection& connection) {
  if (connections_.erase(&connection) == 0) return;
  const auto count = counts_.find(connection.peer().address);
  if (--count->second == 0) counts_.erase(count);
}

bool ConnectionTable::make_room(const std::string& address, std::size_t most) {
  const auto count = counts_.find(address);
  const std::size_t share = std::max<std::size_t>(most / 2, 1);
  if (count != counts_.end() && count->second >= share) return end_longest_waiting(address);
  return connections_.size() < most || end_longest_waiting("");
}

bool ConnectionTable::end_longest_waiting(const std::string& address) {
  std::shared_ptr<Connection> longest;
  for (const auto& [key, weak] : connections_) {
    auto connection = weak.lock();
    if (!connection || (!address.empty() && connection->peer().address != address)) continue;
    const auto since = connection->waits_since();
    if (since && (!longest || *since < *longest->waits_since())) longest = std::move(connection);
  }
  if (longest) longest->abort();
  return longest != nullptr;
}

void ConnectionTable::end_slowest_readers(const ConnectionContext& context,
                                          const Connection& latest) {
  while (context.answers > context.limits.answers_in_flight) {
    std::shared_ptr<Connection> slowest;
    for (const auto& [key, weak] : connections_) {
      auto connection = key != &latest ? weak.lock() : nullptr;
      const auto since = connection ? connection->writes_large_since() : std::nullopt;
      if (since && (!slowest || *since < *slowest->writes_large_since())) {
        slowest = std::move(connection);
      }
    }
    if (!slowest) return;
    slowest->abort();
  }
}

void ConnectionTable::for_each(const std::function<void(Connection&)>& deed) {
  std::vector<std::shared_ptr<Connection>> open;
  open.reserve(connections_.size());
  for (const auto& [key, weak] : connections_) {
    if (auto connection = weak.lock()) open.push_back(std::move(connection));
  }
  for (const auto& connection : open) deed(*connection);
}

}  // namespace berth::gateway
