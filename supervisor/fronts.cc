#include "supervisor/fronts.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {
namespace {

constexpr mode_t kAdminDirectory = 0750;  // members of berth-admin come through to the socket
constexpr mode_t kAdminSocket = 0660;
constexpr const char* kAdminGroup = "berth-admin";

// Lets members of the group reach a file that is berth's own. Without such a group, or the right to
// give files to it, only berth's own user and root do; that is no failure.
void give_to_admins(const std::string& path, mode_t mode) {
  const group* admins = ::getgrnam(kAdminGroup);  // NOLINT(concurrency-mt-unsafe): core strand only
  if (admins == nullptr) return;
  if (::chown(path.c_str(), static_cast<uid_t>(-1), admins->gr_gid) != 0) return;
  // Only now: before that the group was another one.
  if (::chmod(path.c_str(), mode) != 0) return;
}

}  // namespace

std::vector<std::string> unix_sockets(const catalog::ServerConfig& server) {
  constexpr std::string_view kPrefix = "unix:";
  std::vector<std::string> paths;
  for (const std::string& address : server.grpc) {
    if (address.starts_with(kPrefix)) paths.push_back(address.substr(kPrefix.size()));
  }
  return paths;
}

Status Fronts::open() {
  if (Status opened = open_grpc(); !opened) return opened;
  return open_http();
}

Status Fronts::open_grpc() {
  const catalog::ServerConfig& server = parts_.state.config->server;
  inference_.emplace(parts_.state.services);
  admin_.emplace(parts_.state);
  gateway::GrpcOptions options;
  options.sockets = unix_sockets(server);
  options.max_message_bytes = server.max_body;
  // Between prepare_socket_path() and this nobody else made the socket: the state is locked.
  const mode_t before = ::umask(0077);
  Result<std::unique_ptr<gateway::GrpcServer>> listening =
      gateway::GrpcServer::listen(options, {&*inference_, &*admin_});
  ::umask(before);
  if (!listening) return fail(listening.error());
  grpc_server_ = *std::move(listening);
  give_to_admins(server.run_dir, kAdminDirectory);
  for (const std::string& socket : options.sockets) {
    give_to_admins(socket, kAdminSocket);
    parts_.state.grpc.push_back("unix:" + socket);
  }
  return {};
}

Status Fronts::open_http() {
  const catalog::ServerConfig& server = parts_.state.config->server;
  if (server.http.empty()) return {};
  gateway::HttpOptions options{server.http, parts_.ready};
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

void Fronts::end_calls(std::chrono::milliseconds wait) {
  if (grpc_server_) grpc_server_->shutdown(wait);
}

void Fronts::close() {
  grpc_server_.reset();
  http_server_.reset();
}

}  // namespace berth
