#include "supervisor/gateway/grpc/malformed_message.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/status.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/result.h"
#include "common/text.h"
#include "supervisor/rpc/error_detail.h"

namespace berth::gateway {
namespace {

namespace experimental = grpc::experimental;

constexpr std::size_t kMostNameBytes = 128;

// "/berth.v1.Inference/Embed"
bool is_served(std::string name) {
  if (name.empty() || name.starts_with("/berth.v1.Worker/")) return false;
  name.erase(0, 1);
  std::ranges::replace(name, '/', '.');
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name) != nullptr;
}

class Explainer : public experimental::Interceptor {
 public:
  explicit Explainer(std::string method) : method_(std::move(method)) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::PRE_SEND_STATUS)) {
      explain(*methods);
    }
    methods->Proceed();
  }

 private:
  void explain(experimental::InterceptorBatchMethods& methods) const {
    const grpc::Status status = methods.GetSendStatus();
    // None of our own is without a text.
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED || !status.error_message().empty()) {
      return;
    }
    const Error error = is_served(method_) ? malformed() : unknown();
    methods.ModifySendStatus(rpc::to_status(error));
    auto* trailers = methods.GetSendTrailingMetadata();
    if (trailers == nullptr) return;
    trailers->emplace(rpc::kErrorTrailer,
                      rpc::to_trailer(rpc::to_proto(error, {}, rpc::Audience::kClient)));
  }

  [[nodiscard]] Error malformed() const {
    return {Reason::kInvalidArgument,
            "The request of " + method_ +
                " is no message of its type: it is cut off, made with another .proto, or has text "
                "that is not UTF-8 in a field of type string."};
  }
  [[nodiscard]] Error unknown() const {
    return {Reason::kMethodNotAllowed,
            "There is no method " + printable_line(method_, kMostNameBytes) +
                ". Ask the server's reflection for those that there are."};
  }

  const std::string method_;
};

class Factory : public experimental::ServerInterceptorFactoryInterface {
 public:
  experimental::Interceptor* CreateServerInterceptor(experimental::ServerRpcInfo* info) override {
    // gRPC takes it over.
    return std::make_unique<Explainer>(info->method()).release();
  }
};

}  // namespace

std::unique_ptr<experimental::ServerInterceptorFactoryInterface> explain_malformed_messages() {
  return std::make_unique<Factory>();
}

}  // namespace berth::gateway
