#include "supervisor/catalog/listen_address.h"

#include <arpa/inet.h>

#include <sys/un.h>
#include <algorithm>
#include <charconv>

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

tl::expected<void, std::string> check_socket_path(std::string_view path) {
  if (path.size() <= kMaxSocketPath) return {};
  return wrong("the socket's path has " + std::to_string(path.size()) +
               " bytes, and a Unix socket's path has at most " + std::to_string(kMaxSocketPath));
}

}  // namespace berth::catalog
