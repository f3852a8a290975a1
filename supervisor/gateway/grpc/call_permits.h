#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/key_limits.h"
#include "supervisor/gateway/auth/key_gate.h"

namespace berth::gateway {

// The permits of the calls that run, each kept until its status is sent, or gRPC is done with it.
// Any thread; bounded by those calls.
class CallPermits {
 public:
  // Null: keys have no limits. Else it outlives this.
  explicit CallPermits(KeyGate* limits) : limits_(limits) {}

  // Once a call, of a server that has release_permits(). Errors: kRateLimited.
  Status admit(const grpc::ServerContextBase& call, const core::Caller& caller);
  // Nothing where it has none.
  void release(const grpc::ServerContextBase& call);

 private:
  KeyGate* const limits_;
  std::mutex mutex_;
  std::unordered_map<const grpc::ServerContextBase*, core::KeyPermit> held_;
};

// Releases the permits of a server's calls: before the client can know that his call has ended, as
// he may ask again at once.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> release_permits(
    std::shared_ptr<CallPermits> permits);

}  // namespace berth::gateway
