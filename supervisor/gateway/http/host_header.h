#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::gateway {

// A Host header, or the authority of an Origin, taken apart.
struct HostPort {
  std::string name;  // lower case, an IPv6 address without brackets
  std::optional<std::uint16_t> port;
  bool address = false;   // an IP address
  bool loopback = false;  // localhost, 127.0.0.0/8 or ::1
};

// Nothing where it is none: only letters, digits, "." "-" "_", an address, and a port.
std::optional<HostPort> parse_host(std::string_view text);

// Whether a Host header may be answered: "localhost" and IP addresses, with or without a port, and
// the names of `allowed` (with a port: only that one). A page that a browser loaded from elsewhere
// can reach us only through a name of its own (DNS rebinding), never through these.
bool host_allowed(const HostPort& host, const std::vector<HostPort>& allowed);

// Whether a page of this Origin came from the very server that Host names. `secure`: this
// connection is TLS. Scheme, name and port must be the same.
bool same_origin(std::string_view origin, const HostPort& host, bool secure);

}  // namespace berth::gateway
