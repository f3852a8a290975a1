#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// Tells whoever watches the health of models that it may have changed. Thread-safe.
class HealthChanges {
  struct Shared;

 public:
  // `look` is called on the thread that calls changed(), until the token is dropped. It must not
  // block, and not call this. May outlive the changes.
  class Token {
   public:
    Token(HealthChanges& changes, std::function<void()> look);
    Token(const Token&) = delete;
    Token& operator=(const Token&) = delete;
    ~Token();

   private:
    friend HealthChanges;
    const std::shared_ptr<Shared> shared_;
    const std::function<void()> look_;
  };

  void changed();

 private:
  struct Shared {
    std::mutex mutex;
    std::set<Token*> tokens;
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// grpc.health.v1: the service "" is the server, and every model is one by its name or alias. Live
// is not ready, and ready is not model-ready (T94): a model is SERVING while an instance of it can
// answer, and NOT_SERVING before and after. Asking neither wakes nor keeps a model. The server's
// own health is told to everybody, a model's to those who may call.
class HealthService : public grpc::health::v1::Health::CallbackService {
 public:
  // `ready`: whether the server takes requests; any thread. All outlive the calls.
  HealthService(residency::Services services, rpc::CallAccess access, std::function<bool()> ready,
                HealthChanges& changes);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class WatchCall;

  struct Looks;

  const rpc::CallAccess access_;
  const std::shared_ptr<const Looks> looks_;  // a watch may look once more when this is gone
};

}  // namespace berth::gateway
