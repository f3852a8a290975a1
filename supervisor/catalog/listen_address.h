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

// A host as a Host header names it, in lower case and without a port: a name, an IPv4 address, or
// an IPv6 address in brackets. Error: a part of a sentence.
tl::expected<std::string, std::string> normal_host(std::string_view text);

// The origin of web pages as browsers send it: http or https, a host, and the port unless it is the
// scheme's own; in lower case. Neither "*" nor "null" is one. Error: a part of a sentence.
tl::expected<std::string, std::string> normal_origin(std::string_view text);

// Whether only this machine reaches a listener at "HOST:PORT" or "unix:PATH". A name other than
// localhost may stand for any address: false.
bool is_local_address(std::string_view address);

// Checks a socket's absolute path. Error: a part of a sentence that names both numbers.
tl::expected<void, std::string> check_socket_path(std::string_view path);

// "unix:"
inline constexpr std::string_view kUnixPrefix = "unix:";
inline bool is_unix_address(std::string_view address) {
  return address.starts_with(kUnixPrefix);
}

}  // namespace berth::catalog
