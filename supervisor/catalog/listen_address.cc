#include "supervisor/catalog/listen_address.h"

#include <arpa/inet.h>

#include <sys/un.h>
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "common/text.h"

namespace berth::catalog {
namespace {

static_assert(kMaxSocketPath + 1 == sizeof(sockaddr_un::sun_path));

tl::unexpected<std::string> wrong(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

bool is_host_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.';
  });
}

bool is_ipv6(const std::string& host) {
  in6_addr parsed{};
  return inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

bool is_ipv4(const std::string& host) {
  in_addr parsed{};
  return inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

// The host of "HOST:PORT", which has been checked; IPv6 without its brackets.
std::string_view host_of(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

tl::expected<void, std::string> check_host_port(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return wrong("it has no port");
  std::string_view host = address.substr(0, colon);
  const std::string_view port_text = address.substr(colon + 1);

  std::uint32_t port = 0;
  const auto parsed =
      std::from_chars(port_text.data(), port_text.data() + port_text.size(), port, 10);
  if (parsed.ec != std::errc() || parsed.ptr != port_text.data() + port_text.size() ||
      port > 65535) {
    return wrong("its port is not a number from 0 to 65535");
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(std::string(host))) return wrong("its host is not an IPv6 address");
    return {};
  }
  if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address must stand in brackets: [::1]:11500");
  }
  if (!is_host_name(host)) return wrong("its host is not a name or an address");
  const bool digits = host.find_first_not_of("0123456789.") == std::string_view::npos;
  if (digits && !is_ipv4(std::string(host))) return wrong("its host is not an IPv4 address");
  return {};
}

tl::expected<std::string, std::string> normal_host(std::string_view text) {
  const std::string host = lowered(text);
  if (host.starts_with('[') && host.ends_with(']')) {
    if (!is_ipv6(host.substr(1, host.size() - 2))) return wrong("it is not an IPv6 address");
    return host;
  }
  if (host.find("://") != std::string::npos) return wrong("it has a scheme; write the host alone");
  if (is_ipv6(host)) return wrong("an IPv6 address must stand in brackets: [::1]");
  if (host.find(':') != std::string::npos) return wrong("it has a port; any port is allowed");
  if (!is_host_name(host)) return wrong("it is not a name or an address");
  return host;
}

tl::expected<std::string, std::string> normal_origin(std::string_view text) {
  const std::string origin = lowered(text);
  if (origin == "*") return wrong("every page would be one; list those that may call the server");
  constexpr std::string_view kSeparator = "://";
  const std::size_t colon = origin.find(kSeparator);
  const std::string scheme = origin.substr(0, colon);
  if (colon == std::string::npos || (scheme != "http" && scheme != "https")) {
    return wrong("it does not begin with http:// or https://");
  }
  std::string place = origin.substr(colon + kSeparator.size());
  if (place.ends_with('/')) return wrong("an origin has no path; leave the last / out");
  if (place.find_first_of("/?#@") != std::string::npos) {
    return wrong("an origin is only scheme://host[:port]");
  }
  const std::size_t bracket = place.rfind(']');
  const std::size_t port = place.rfind(':');
  const bool has_port =
      port != std::string::npos && (bracket == std::string::npos || port > bracket);
  if (has_port) {
    if (auto good = check_host_port(place); !good) return wrong(good.error());
    const std::string_view number = std::string_view(place).substr(port + 1);
    if (number.starts_with('0')) return wrong("its port is not a number from 1 to 65535");
    if (number == (scheme == "http" ? "80" : "443")) place.resize(port);
  } else if (auto good = normal_host(place); !good) {
    return wrong(good.error());
  }
  return scheme + std::string(kSeparator) + place;
}

bool is_local_address(std::string_view address) {
  if (is_unix_address(address)) return true;
  const std::string host = lowered(host_of(address));
  if (host == "localhost") return true;
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24U) == 127;
  in6_addr six{};
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

tl::expected<void, std::string> check_socket_path(std::string_view path) {
  if (path.size() <= kMaxSocketPath) return {};
  return wrong("the socket's path has " + std::to_string(path.size()) +
               " bytes, and a Unix socket's path has at most " + std::to_string(kMaxSocketPath));
}

}  // namespace berth::catalog
