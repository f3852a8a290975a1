#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "supervisor/gateway/http/connection.h"

namespace berth::gateway {

// The connections of one server, and which of them makes room for others. Does not own them. The
// server's thread only.
class ConnectionTable {
 public:
  void add(const std::shared_ptr<Connection>& connection);
  void remove(Connection& connection);

  // Whether there is room for one more from there, if need be behind the end of the one that has
  // waited longest for a request: `most` in all, and half of it from one address, as whoever keeps
  // connections must not keep others out.
  bool make_room(const std::string& address, std::size_t most);
  // Ends those that take their large answers longest, until what is written to the others fits with
  // what `latest` begins now.
  void end_slowest_readers(const ConnectionContext& context, const Connection& latest);
  // Also where connections end meanwhile.
  void for_each(const std::function<void(Connection&)>& deed);

 private:
  // `address` empty: of all.
  bool end_longest_waiting(const std::string& address);

  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;
  std::unordered_map<std::string, std::size_t> counts_;  // by address
};

}  // namespace berth::gateway
