#include "supervisor/gateway/grpc/grpc_server.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace berth::gateway {
namespace {

class RealServer : public GrpcServer {
 public:
  explicit RealServer(std::unique_ptr<grpc::Server> server) : server_(std::move(server)) {}
  ~RealServer() override { shutdown(std::chrono::milliseconds(0)); }
  RealServer(const RealServer&) = delete;
  RealServer& operator=(const RealServer&) = delete;

  void shutdown(std::chrono::milliseconds wait) override {
    server_->Shutdown(std::chrono::system_clock::now() + wait);
  }

 private:
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(
    const GrpcOptions& options, const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  const auto most = static_cast<int>(
      std::min<std::uint64_t>(options.max_message_bytes, std::numeric_limits<int>::max()));
  builder.SetMaxReceiveMessageSize(most);
  // Two daemons must never share an address without knowing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<int> bound(options.sockets.size(), 0);
  for (std::size_t i = 0; i < options.sockets.size(); ++i) {
    builder.AddListeningPort("unix:" + options.sockets[i], grpc::InsecureServerCredentials(),
                             &bound[i]);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  for (std::size_t i = 0; i < options.sockets.size(); ++i) {
    if (!server || bound[i] == 0) {
      return fail(Reason::kInternal, "gRPC cannot listen on " + options.sockets[i] +
                                         ". Check that its directory can be written.");
    }
  }
  return std::make_unique<RealServer>(std::move(server));
}

}  // namespace berth::gateway
