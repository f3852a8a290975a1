#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "grpc/health/v1/health.grpc.pb.h"
#include "supervisor/gateway/grpc/health_watches.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// Tells, as long as what it returns is kept, of a caller who is not any more who he was. Any
// thread.
using WatchCaller = std::function<std::shared_ptr<void>(
    core::Caller caller, std::function<void(const Error& error)> on_refused)>;

// grpc.health.v1: the service "" is the server, and every model is one by its name or alias. Live
// is not ready, and ready is not model-ready (T94): a model is SERVING while an instance of it can
// answer, and NOT_SERVING before and after. Asking neither wakes nor keeps a model. The server's
// own health is told to everybody, a model's to those who may call.
class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  // What a request may be long, bytes: names are shorter.
  static constexpr std::size_t kMostRequest = 1024;

  // All outlive the calls. `watch_caller` may be empty: everybody always is who he was.
  HealthService(residency::Services services, rpc::CallAccess access, HealthWatches& watches,
                WatchCaller watch_caller);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class WatchCall;

  const residency::Services services_;
  const std::shared_ptr<const rpc::CallAccess> access_;  // a watch may end when this is gone
  HealthWatches& watches_;
  const WatchCaller watch_caller_;
};

}  // namespace berth::gateway
