#include "supervisor/gateway/grpc/call_permits.h"

#include <utility>

namespace berth::gateway {
namespace {

namespace experimental = grpc::experimental;

// Lives as long as its call.
class Releaser : public experimental::Interceptor {
 public:
  Releaser(std::shared_ptr<CallPermits> permits, const grpc::ServerContextBase& call)
      : permits_(std::move(permits)), call_(call) {}
  Releaser(const Releaser&) = delete;
  Releaser& operator=(const Releaser&) = delete;
  ~Releaser() override { permits_->release(call_); }

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      permits_->release(call_);
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<CallPermits> permits_;
  const grpc::ServerContextBase& call_;
};

class Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(std::shared_ptr<CallPermits> permits) : permits_(std::move(permits)) {}

  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    // gRPC takes it over.
    return std::make_unique<Releaser>(permits_, *info->server_context()).release();
  }

 private:
  const std::shared_ptr<CallPermits> permits_;
};

}  // namespace

Status CallPermits::admit(const grpc::ServerContextBase& call, const core::Caller& caller) {
  if (limits_ == nullptr || caller.key.empty()) return {};
  Result<core::KeyPermit> permit = limits_->admit(caller);
  if (!permit) return fail(permit.error());
  const std::lock_guard lock(mutex_);
  held_.insert_or_assign(&call, *std::move(permit));
  return {};
}

void CallPermits::release(const grpc::ServerContextBase& call) {
  const std::lock_guard lock(mutex_);
  held_.erase(&call);
}

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> release_permits(
    std::shared_ptr<CallPermits> permits) {
  return std::make_unique<Factory>(std::move(permits));
}

}  // namespace berth::gateway
