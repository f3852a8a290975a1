#include "supervisor/fronts.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/admin/grpc/admin_service.h"
#include "supervisor/api_routes.h"
#include "supervisor/core/entitlement.h"
#include "supervisor/gateway/grpc/call_gate.h"
#include "supervisor/gateway/grpc/health_service.h"
#include "supervisor/gateway/grpc/inference_service.h"
#include "supervisor/gateway/grpc/reflection_service.h"
#include "supervisor/gateway/openai/routes.h"

namespace berth {
namespace {

constexpr const char* kAdminGroup = "berth-admin";
constexpr std::string_view kUnix = "unix:";
// Whoever can reach a socket may connect: what he may do there, his user says.
constexpr mode_t kOpenSocket = 0666;
constexpr mode_t kOwnSocket = 0600;
// A question without a key.
constexpr auto kHealthMessageWithin = std::chrono::seconds(10);
// Descriptors that are not HTTP connections: workers, logs, the store, and gRPC's 1600 connections.
constexpr std::size_t kOtherFiles = 3072;

// How many connections there may be within the limit of open files, which is raised as far as that
// helps and the system lets it.
std::size_t connections_within_limit(std::size_t wanted) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  const rlim_t needed = wanted + kOtherFiles;
  if (files.rlim_cur < needed) {
    rlimit raised = files;
    raised.rlim_cur = std::min(needed, files.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  if (files.rlim_cur >= needed) return wanted;
  return files.rlim_cur > 2 * kOtherFiles ? files.rlim_cur - kOtherFiles : files.rlim_cur / 2;
}

std::optional<gid_t> admin_group() {
  const group* admins = ::getgrnam(kAdminGroup);  // NOLINT(concurrency-mt-unsafe): core strand only
  if (admins == nullptr) return std::nullopt;
  return admins->gr_gid;
}

// Whether an event can tell of another health of the server or of a model.
bool concerns_health(std::string_view event) {
  return !event.starts_with("request.") && event != "load.progress";
}

}  // namespace

std::vector<std::string> unix_sockets(const catalog::ServerConfig& server) {
  std::vector<std::string> paths;
  for (const std::string& address : server.grpc) {
    if (address.starts_with(kUnix)) paths.push_back(address.substr(kUnix.size()));
  }
  return paths;
}

std::vector<std::string> network_addresses(const catalog::ServerConfig& server) {
  std::vector<std::string> addresses;
  for (const std::string& address : server.grpc) {
    if (!address.starts_with(kUnix)) addresses.push_back(address);
  }
  return addresses;
}

Status Fronts::open() {
  // At least four of the largest requests of one tenant may wait.
  parts_.state.services.waiting->set_most(
      std::max(core::WaitingBytes::kLeast, 8 * parts_.state.config->server.max_body));
  if (Status opened = open_grpc(); !opened) return opened;
  return open_http();
}

gateway::GrpcServer::Services Fronts::grpc_services(const rpc::CallAccess& access) {
  gateway::GrpcServer::Services services;
  const residency::Services& use = parts_.state.services;
  services.push_back(gateway::gated(std::make_unique<gateway::InferenceService>(use, access),
                                    v1::Inference::service_full_name(), access));
  services.push_back(gateway::gated(std::make_unique<admin::AdminService>(parts_.state, access),
                                    v1::Admin::service_full_name(), access));
  gateway::WatchCaller watch_caller = [callers = parts_.state.callers](core::Caller caller,
                                                                       auto on_refused) {
    return callers->watch(std::move(caller), std::move(on_refused));
  };
  services.push_back(gateway::timed(
      std::make_unique<gateway::HealthService>(use, access, health_, std::move(watch_caller)),
      grpc::health::v1::Health::service_full_name(), kHealthMessageWithin));
  services.push_back(std::make_unique<gateway::ReflectionService>(
      access,
      std::vector<std::string>{v1::Inference::service_full_name(), v1::Admin::service_full_name(),
                               grpc::health::v1::Health::service_full_name()}));
  return services;
}

Status Fronts::open_grpc() {
  const catalog::ServerConfig& server = parts_.state.config->server;
  gateway::GrpcOptions options;
  options.sockets = unix_sockets(server);
  options.socket_mode = parts_.demo ? kOwnSocket : kOpenSocket;
  options.admin_group = admin_group();
  options.limits = &parts_.limits;
  options.addresses = network_addresses(server);
  options.tls_cert = server.tls_cert;
  options.tls_key = server.tls_key;
  options.max_message_bytes = server.max_body;
  Result<std::unique_ptr<gateway::GrpcServer>> listening = gateway::GrpcServer::listen(
      options, parts_.authenticator, core::for_caller,
      [this](const rpc::CallAccess& access) { return grpc_services(access); });
  if (!listening) return fail(listening.error());
  grpc_server_ = *std::move(listening);
  parts_.state.grpc = grpc_server_->addresses();
  health_events_ = parts_.state.events
                       .watch(std::numeric_limits<std::uint64_t>::max(),
                              [this](const admin::EventHub::EventPtr& event) {
                                if (concerns_health(event->name)) health_.changed();
                              })
                       .subscription;
  return {};
}

Status Fronts::open_http() {
  const catalog::ServerConfig& server = parts_.state.config->server;
  if (server.http.empty()) return {};
  gateway::HttpOptions options;
  options.address = server.http;
  options.routes = http_routes();
  options.authenticator = &parts_.authenticator;
  options.key_limits = &parts_.limits;
  options.ids = &parts_.state.services.ids;
  options.on_refused = [&book = parts_.state.services.requests](const gateway::HttpRefusal& one) {
    residency::RequestArrival arrival;
    arrival.id = one.id;
    if (one.caller != nullptr) arrival.tenant = one.caller->tenant;
    arrival.protocol = "http";
    book.refused(std::move(arrival), "", one.why);
  };
  options.limits.max_body = server.max_body;
  options.limits.connections = connections_within_limit(options.limits.connections);
  options.allowed_hosts = server.allowed_hosts;
  options.cors_origins = server.cors_origins;
  options.tls_cert = server.tls_cert;
  options.tls_key = server.tls_key;
  options.run_blocking = parts_.state.run_blocking;
  auto listening = gateway::HttpServer::listen(options);
  if (!listening && parts_.demo && listening.error().reason == Reason::kConflict) {
    // A demo finds its way beside whatever runs already.
    parts_.state.services.events.emit_typed(
        events::ServerDegraded{.part = "http", .problem = listening.error().message});
    options.address = "127.0.0.1:0";
    listening = gateway::HttpServer::listen(options);
  }
  if (!listening) return fail(listening.error());
  http_server_ = *std::move(listening);
  parts_.state.http = http_server_->address();
  return {};
}

// What HTTP serves.
std::vector<gateway::Route> Fronts::http_routes() {
  std::vector<gateway::Route> routes = gateway::health_routes(parts_.ready);
  std::ranges::move(gateway::openai::routes(parts_.state.services), std::back_inserter(routes));
  std::ranges::move(api_routes(parts_.state, parts_.metrics), std::back_inserter(routes));
  return routes;
}

void Fronts::drain() {
  if (http_server_) http_server_->drain();
}

void Fronts::end_calls(std::chrono::milliseconds wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  // Both end in the same time: this one goes on while the other is waited for.
  if (http_server_) http_server_->finish({});
  if (grpc_server_) grpc_server_->shutdown(wait);
  if (http_server_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    http_server_->finish(std::max(left, std::chrono::milliseconds{}));
  }
}

void Fronts::close() {
  health_events_.reset();
  grpc_server_.reset();
  http_server_.reset();
}

}  // namespace berth
