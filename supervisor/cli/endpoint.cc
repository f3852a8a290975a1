#include "supervisor/cli/endpoint.h"

#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/catalog/config.h"

namespace berth::cli {
namespace {

constexpr std::size_t kSocketPathBytes = sizeof(sockaddr_un{}.sun_path);
constexpr std::string_view kSystemSocket = "/run/berth/berth.sock";
constexpr std::string_view kExpected =
    "expected unix:PATH or HOST:PORT, e.g. unix:/run/berth/berth.sock or 127.0.0.1:50061";

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

Result<Endpoint> parse_socket(std::string_view path) {
  if (path.starts_with("//")) path.remove_prefix(2);  // unix:///run/…
  if (path.empty()) {
    return fail(Reason::kInvalidArgument, "'unix:' names no socket: " + std::string(kExpected));
  }
  if (path.size() >= kSocketPathBytes) {
    return fail(Reason::kInvalidArgument, "the socket path has " + std::to_string(path.size()) +
                                              " bytes, but the system allows " +
                                              std::to_string(kSocketPathBytes - 1) + ": " +
                                              std::string(path));
  }
  Endpoint endpoint;
  endpoint.socket = path;
  endpoint.text = "unix:" + endpoint.socket;
  return endpoint;
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port < 1 || port > 65535) return std::nullopt;
  return port;
}

// A listener on every address is reached by the loopback one.
std::string reachable_host(std::string host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  if (host == "::") return "::1";
  return host;
}

std::optional<Endpoint> configured(const Environment& environment, std::string& note) {
  const std::string file =
      environment.non_empty("BERTH_CONFIG").value_or(catalog::default_config_path());
  if (!exists(file)) return std::nullopt;
  const catalog::ConfigResult read = catalog::load_config(file);
  if (!read.config) {
    note = file + " has errors, so its sockets are not known: see 'berth config check'";
    return std::nullopt;
  }
  // A socket before the network: there the kernel says who comes, and no key is needed.
  const std::vector<std::string>& listeners = read.config->server.grpc;
  const auto socket = std::ranges::find_if(
      listeners, [](const std::string& address) { return address.starts_with("unix:"); });
  if (socket == listeners.end()) return std::nullopt;
  auto endpoint = parse_endpoint(*socket);
  if (!endpoint) {
    note = file + " has a listener that cannot be used from here: " + endpoint.error().message;
    return std::nullopt;
  }
  endpoint->origin = file;
  return std::move(*endpoint);
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view text) {
  if (text.starts_with("unix:")) return parse_socket(text.substr(5));
  if (text.starts_with("/")) return parse_socket(text);
  const std::string quoted = "'" + std::string(text) + "'";
  if (text.find("://") != std::string_view::npos) {
    return fail(Reason::kInvalidArgument,
                quoted + " is a URL, but the command line speaks gRPC: " + std::string(kExpected));
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return fail(Reason::kInvalidArgument,
                quoted + " is not an endpoint: " + std::string(kExpected));
  }
  const auto port = parse_port(text.substr(colon + 1));
  if (!port) {
    return fail(Reason::kInvalidArgument,
                quoted + " has no port from 1 to 65535 at its end: " + std::string(kExpected));
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return fail(Reason::kInvalidArgument, quoted +
                                              " has an IPv6 address without brackets: write [" +
                                              std::string(host) + "]:" + std::to_string(*port));
  }
  Endpoint endpoint;
  endpoint.text = text;
  endpoint.host = reachable_host(std::string(host));
  endpoint.port = *port;
  return endpoint;
}

Result<Endpoint> find_endpoint(std::string_view given, const Environment& environment) {
  if (!given.empty()) {
    auto endpoint = parse_endpoint(given);
    if (!endpoint) return fail(Reason::kInvalidArgument, "--endpoint: " + endpoint.error().message);
    endpoint->origin = "--endpoint";
    return endpoint;
  }
  if (const auto variable = environment.non_empty("BERTH_ENDPOINT")) {
    auto endpoint = parse_endpoint(*variable);
    if (!endpoint) {
      return fail(Reason::kInvalidArgument, "BERTH_ENDPOINT: " + endpoint.error().message);
    }
    endpoint->origin = "BERTH_ENDPOINT";
    return endpoint;
  }
  std::string note;
  if (auto endpoint = configured(environment, note)) return std::move(*endpoint);

  std::string path(kSystemSocket);
  if (!exists(path)) {
    if (const auto runtime = environment.non_empty("XDG_RUNTIME_DIR")) {
      const std::string own = *runtime + "/berth/berth.sock";
      if (own.size() < kSocketPathBytes && exists(own)) path = own;
    }
  }
  auto endpoint = parse_socket(path);
  if (!endpoint) return endpoint;
  endpoint->origin = "default";
  endpoint->note = note;
  return endpoint;
}

}  // namespace berth::cli
