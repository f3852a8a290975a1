#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace berth::gateway {

struct GrpcOptions {
  std::vector<std::string> sockets;  // absolute paths, made ready by process::prepare_socket_path
  std::uint64_t max_message_bytes = 64ULL << 20;
};

// The gRPC front on Unix sockets, which are made with the process's umask. Destroying it ends every
// call.
class GrpcServer {
 public:
  // The services must outlive the server. Errors: kInternal with the socket that cannot be used.
  static Result<std::unique_ptr<GrpcServer>> listen(const GrpcOptions& options,
                                                    const std::vector<grpc::Service*>& services);

  GrpcServer() = default;
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;
  virtual ~GrpcServer() = default;

  // Takes no new calls, waits for those that run, and ends what still runs after `wait`. Blocks;
  // any thread but gRPC's.
  virtual void shutdown(std::chrono::milliseconds wait) = 0;
};

}  // namespace berth::gateway
