#include "supervisor/gateway/grpc/call_count.h"

#include <utility>

namespace berth::gateway {
namespace {

namespace experimental = grpc::experimental;

// Lives as long as its call.
class Counted : public experimental::Interceptor {
 public:
  explicit Counted(std::shared_ptr<std::atomic<int>> running) : running_(std::move(running)) {
    ++*running_;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() override { --*running_; }

  void Intercept(experimental::InterceptorBatchMethods* methods) override { methods->Proceed(); }

 private:
  const std::shared_ptr<std::atomic<int>> running_;
};

class Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(std::shared_ptr<std::atomic<int>> running) : running_(std::move(running)) {}

  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo*) override {
    // gRPC takes it over.
    return std::make_unique<Counted>(running_).release();
  }

 private:
  const std::shared_ptr<std::atomic<int>> running_;
};

}  // namespace

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> count_calls(
    std::shared_ptr<std::atomic<int>> running) {
  return std::make_unique<Factory>(std::move(running));
}

}  // namespace berth::gateway
