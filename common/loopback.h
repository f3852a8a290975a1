#pragma once

#include <netinet/in.h>

namespace berth {

// Whether an address is this machine's own (RFC 1122, 3.2.1.3; RFC 4291, 2.5.3), also an IPv4 one
// that comes as an IPv6 one.
inline bool is_loopback(const in_addr& address) {
  constexpr unsigned kNet = 127;
  constexpr unsigned kHostBits = 24;
  return ntohl(address.s_addr) >> kHostBits == kNet;
}
inline bool is_loopback(const in6_addr& address) {
  constexpr unsigned kNet = 127;
  constexpr unsigned kMappedAt = 12;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return address.s6_addr[kMappedAt] == kNet;
  return IN6_IS_ADDR_LOOPBACK(&address) != 0;
}

}  // namespace berth
