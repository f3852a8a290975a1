#include "supervisor/gateway/http/host_header.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <system_error>

#include "common/text.h"

namespace berth::gateway {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failed != std::errc() || end != text.data() + text.size() || text.size() > 5) return {};
  return port;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
}

bool take_address(HostPort& host) {
  boost::system::error_code failed;
  const auto address = boost::asio::ip::make_address(host.name, failed);
  if (failed) return false;
  host.address = true;
  host.loopback = address.is_loopback();
  return true;
}

}  // namespace

std::optional<HostPort> parse_host(std::string_view text) {
  HostPort host;
  std::string_view rest;
  const bool bracket = text.starts_with('[');
  if (bracket) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    host.name = lowered(text.substr(1, end - 1));
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    host.name = lowered(text.substr(0, colon));
    rest = text.substr(colon);
  }
  if (!rest.empty()) {
    if (rest.front() != ':') return {};
    host.port = parse_port(rest.substr(1));
    if (!host.port) return {};
  }
  const bool address = take_address(host);
  if (bracket) return address ? std::optional(host) : std::nullopt;
  if (!address && !is_name(host.name)) return {};
  if (host.name == "localhost") host.loopback = true;
  return host;
}

bool host_allowed(const HostPort& host, const std::vector<HostPort>& allowed) {
  if (host.address || host.name == "localhost") return true;
  return std::ranges::any_of(allowed, [&host](const HostPort& named) {
    return named.name == host.name && (!named.port || named.port == host.port);
  });
}

bool same_origin(std::string_view origin, const HostPort& host, bool secure) {
  const std::string_view scheme = secure ? "https://" : "http://";
  if (!origin.starts_with(scheme)) return false;
  const std::optional<HostPort> from = parse_host(origin.substr(scheme.size()));
  const std::uint16_t usual = secure ? kHttpsPort : kHttpPort;
  return from && from->name == host.name && from->port.value_or(usual) == host.port.value_or(usual);
}

}  // namespace berth::gateway
