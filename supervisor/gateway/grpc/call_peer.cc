#include "supervisor/gateway/grpc/call_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

#include "common/loopback.h"

namespace berth::gateway {
namespace {

std::string_view view(grpc::string_ref text) {
  return {text.data(), text.size()};
}

// An address without its port, of "HOST", "HOST:PORT" or "[HOST]:PORT".
std::string_view host_of(std::string_view authority) {
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    return end == std::string_view::npos ? authority : authority.substr(1, end - 1);
  }
  const std::size_t colon = authority.find(':');
  // More than one: an IPv6 address that stands alone.
  if (colon == std::string_view::npos || authority.find(':', colon + 1) != std::string_view::npos) {
    return authority;
  }
  return authority.substr(0, colon);
}

bool names_loopback(std::string_view host) {
  const std::string text(host);
  in_addr four{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return is_loopback(four);
  in6_addr six{};
  return ::inet_pton(AF_INET6, text.c_str(), &six) == 1 && is_loopback(six);
}

}  // namespace

Peer network_peer(std::string_view name) {
  Peer peer;
  constexpr std::string_view kIpv4 = "ipv4:";
  constexpr std::string_view kIpv6 = "ipv6:";
  if (name.starts_with(kIpv4)) {
    peer.loopback = names_loopback(host_of(name.substr(kIpv4.size())));
  } else if (name.starts_with(kIpv6)) {
    name.remove_prefix(kIpv6.size());
    constexpr std::string_view kOpen = "%5B";
    if (name.starts_with(kOpen)) {
      name.remove_prefix(kOpen.size());
      name = name.substr(0, name.find("%5D"));
    } else {
      name = host_of(name);
    }
    peer.loopback = names_loopback(name);
  }
  return peer;
}

Presented presented(const grpc::CallbackServerContext& context) {
  Presented said;
  const std::string_view host = host_of(view(context.ExperimentalGetAuthority()));
  said.loopback_host = host == "localhost" || names_loopback(host);
  for (const auto& [name_ref, value] : context.client_metadata()) {
    const std::string_view name = view(name_ref);
    if (name == "authorization") {
      // Two of them leave open which one is meant; then neither is a key.
      said.authorization = said.authorization.empty() ? view(value) : "ambiguous";
    } else if (name == "origin") {
      // Pages do not speak gRPC; whatever sends this stands for one.
      said.foreign_origin = true;
    } else if (name == "forwarded" || name == "via" || name.starts_with("x-forwarded-")) {
      said.forwarded = true;
    }
  }
  return said;
}

}  // namespace berth::gateway
