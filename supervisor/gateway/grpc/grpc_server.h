#pragma once

#include <grpcpp/impl/service_type.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/gateway/auth/authenticator.h"
#include "supervisor/gateway/auth/key_gate.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

struct GrpcOptions {
  std::vector<std::string> sockets{};  // absolute paths, made ready by process::prepare_socket_path
  mode_t socket_mode = 0666;           // who may connect to them; what he may do is another matter
  std::vector<std::string> addresses{};  // "HOST:PORT"; port 0: any
  std::string tls_cert{};                // PEM files for the addresses; empty: no TLS
  std::string tls_key{};
  std::uint64_t max_message_bytes = 64ULL << 20;
  int most_calls_of_user = 1024;  // at once, of one who comes by Unix socket and is no admin
  // Besides root and berth's own user, who of a Unix socket's peers is an admin: members of this
  // group. Absent: nobody.
  std::optional<gid_t> admin_group{};
  KeyGate* limits = nullptr;  // null: keys have none; else it outlives the server
};

// The gRPC front. gRPC 1.51 bounds no connections, so that they are accepted here and handed to it;
// and it tells a call nothing of its connection but a name, so that those by Unix socket go to a
// server of their peer's own: what its services know of the peer holds for all its calls.
// Destroying it ends every call.
class GrpcServer {
 public:
  using Services = std::vector<std::unique_ptr<grpc::Service>>;
  // Makes what one server serves; `access` tells who makes its calls. Any thread.
  using MakeServices = std::function<Services(rpc::CallAccess access)>;

  // Admins, and as many clients, by Unix socket that are told apart at once. Beyond that, of those
  // who have no call the one that called least recently is disconnected, and may connect again.
  static constexpr std::size_t kMostPeers = 64;

  // `authenticator` outlives the server; `cut` as rpc::CallAccess::cut. Errors: kInvalidArgument
  // and kInternal with the address that cannot be used, or the file.
  static Result<std::unique_ptr<GrpcServer>> listen(
      const GrpcOptions& options, const Authenticator& authenticator,
      std::function<Error(Error, const core::Caller&)> cut, MakeServices make_services);

  GrpcServer() = default;
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  virtual ~GrpcServer() = default;

  // Where it listens: "unix:PATH", and "HOST:PORT" with the port that was taken.
  [[nodiscard]] virtual const std::vector<std::string>& addresses() const = 0;

  // Takes no new calls, waits for those that run, and ends what still runs after `wait`. Blocks;
  // any thread but gRPC's.
  virtual void shutdown(std::chrono::milliseconds wait) = 0;
};

}  // namespace berth::gateway
