#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace berth::catalog {

// Longest path of a Unix socket, in bytes (sun_path without its terminator).
inline constexpr std::size_t kMaxSocketPath = 107;

// Checks "HOST:PORT": a name, an IPv4 address, or an IPv6 address in brackets; port 0 to 65535.
// Error: what is wrong with it, a part of a sentence.
tl::expected<void, std::string> check_host_port(std::string_view address);

// Checks a socket's absolute path. Error: a part of a sentence that names both numbers.
tl::expected<void, std::string> check_socket_path(std::string_view path);

// "unix:"
inline constexpr std::string_view kUnixPrefix = "unix:";
inline bool is_unix_address(std::string_view address) {
  return address.starts_with(kUnixPrefix);
}

}  // namespace berth::catalog
