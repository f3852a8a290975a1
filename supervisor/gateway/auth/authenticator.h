#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::gateway {

// The other end of a connection, as the kernel tells.
struct Peer {
  // Of a Unix socket; absent: a network connection.
  std::optional<std::uint32_t> uid;
  // Of a Unix socket: root, berth's own user, or a member of the group berth-admin.
  bool admin = false;
  // Of a network connection: whether it comes from this machine.
  bool loopback = false;
  // Of a network connection: all that come from there have one share. An IPv4 address, or the first
  // 64 bits of an IPv6 one.
  std::string address{};
};

// What a request says about its caller.
struct Presented {
  std::string_view authorization{};  // the header as it came, "Bearer …"; empty: none
  bool loopback_host = false;        // Host names this machine
  bool foreign_origin = false;       // Origin was sent, and is not ours
  bool forwarded = false;            // Forwarded, X-Forwarded-* or Via was sent
};

// Says who a caller is (roles, tenants, entitlement). Any thread; must not block.
class Authenticator {
 public:
  Authenticator() = default;
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  virtual ~Authenticator() = default;

  // Errors: kUnauthenticated (a key that is not known, whatever the connection; a network client
  // without one, where none may be anonymous).
  [[nodiscard]] virtual Result<core::Caller> authenticate(const Peer& peer,
                                                          const Presented& presented) const = 0;
};

}  // namespace berth::gateway
