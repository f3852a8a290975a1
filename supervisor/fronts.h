#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/admin/metrics.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/gateway/auth/authenticator.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "supervisor/gateway/grpc/grpc_server.h"
#include "supervisor/gateway/grpc/health_watches.h"
#include "supervisor/gateway/http/http_server.h"

namespace berth {

// Where clients come in: the gRPC and HTTP servers with what they serve. Made, opened and closed on
// the core strand.
class Fronts {
 public:
  struct Parts {
    admin::ServerState& state;  // outlives this; open() writes the addresses into it
    admin::Metrics& metrics;    // outlives this
    const gateway::Authenticator& authenticator;  // outlives this
    gateway::KeyGate& limits;                     // outlives this
    bool demo = false;            // HTTP may take another port than the configured one
    std::function<bool()> ready;  // any thread
  };

  explicit Fronts(Parts parts)
      : parts_(std::move(parts)), health_(parts_.state.services, parts_.ready) {}

  // Listens everywhere that is configured. Errors: which address, and why.
  Status open();
  // HTTP requests are refused as shutting_down from now on; /livez and /readyz are still answered.
  void drain();
  // Takes no new gRPC calls and HTTP connections, and ends what still runs after `wait`. Blocks: on
  // the pool.
  void end_calls(std::chrono::milliseconds wait);
  // Ends every connection.
  void close();

 private:
  Status open_grpc();
  Status open_http();
  std::vector<gateway::Route> http_routes();

  const Parts parts_;
  // What one gRPC server serves.
  gateway::GrpcServer::Services grpc_services(const rpc::CallAccess& access);

  gateway::HealthWatches health_;
  std::unique_ptr<gateway::GrpcServer> grpc_server_;
  std::unique_ptr<admin::EventHub::Subscription> health_events_;
  std::unique_ptr<gateway::HttpServer> http_server_;
};

// The sockets among the addresses that gRPC is served at, and the others.
std::vector<std::string> unix_sockets(const catalog::ServerConfig& server);
std::vector<std::string> network_addresses(const catalog::ServerConfig& server);

}  // namespace berth
