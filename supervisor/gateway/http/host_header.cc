#include "supervisor/gateway/http/host_header.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <charconv>
#include <system_error>

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

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return made;
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
    host.name = lower(text.substr(1, end - 1));
    rest = text.substr(end + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    host.name = lower(text.substr(0, colon));
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

bool host_allowed(std::string_view text, const std::vector<std::string>& allowed) {
  const std::optional<HostPort> host = parse_host(text);
  if (!host) return false;
  if (host->address || host->name == "localhost") return true;
  return std::ranges::any_of(allowed, [&host](const std::string& entry) {
    const std::optional<HostPort> named = parse_host(entry);
    return named && named->name == host->name && (!named->port || named->port == host->port);
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
