#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "supervisor/core/caller.h"
#include "supervisor/gateway/unary_request.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// A gRPC call with one answer, as the responder of the request that brings it. Ends exactly once:
// with the answer, an error, or the client's going, which cancels the request. Thread-safe; keeps
// itself alive until gRPC is done with it, so make it with std::make_shared, and call begin()
// before it is given to gRPC.
template <typename Kind, typename Response>
class UnaryCall : public grpc::ServerUnaryReactor, public UnaryResponder<typename Kind::Answer> {
 public:
  using Answer = typename Kind::Answer;
  using Put = void (*)(Answer answer, const std::string& model, const std::string& request_id,
                       Response& response);

  // Who calls, and what he may be told; `put` writes the answer.
  UnaryCall(grpc::CallbackServerContext& context, Response& response, Put put,
            std::shared_ptr<const rpc::CallAccess> access, core::Caller caller,
            std::string request_id)
      : context_(context),
        response_(response),
        put_(put),
        access_(std::move(access)),
        caller_(std::move(caller)),
        request_id_(std::move(request_id)) {}

  void begin(std::shared_ptr<UnaryCall> self) { self_ = std::move(self); }
  void run(std::shared_ptr<UnaryRequest<Kind>> request) {
    const std::lock_guard lock(mutex_);
    if (gone_) request->cancel();
    if (!over_) request_ = std::move(request);
  }

  Status on_answer(Answer answer, const std::string& model) override {
    const std::lock_guard lock(mutex_);
    // The response and the context are gRPC's again once it is finished.
    if (std::exchange(finished_, true)) return {};
    put_(std::move(answer), model, request_id_, response_);
    Finish(grpc::Status::OK);
    return {};
  }
  void on_failed(const Error& error) override {
    const v1::ErrorDetail detail = rpc::detail_for(*access_, caller_, error, request_id_);
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    rpc::finish_badly(context_, *this, detail, error);
  }

 private:
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (request_) request_->cancel();
    if (std::exchange(finished_, true)) return;
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The client went away."));
  }
  void OnDone() override {
    std::shared_ptr<UnaryRequest<Kind>> request;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      request = std::move(request_);
    }
    // The last reference may be this one.
    const std::shared_ptr<UnaryCall> self = std::move(self_);
  }

  grpc::CallbackServerContext& context_;
  Response& response_;
  const Put put_;
  // The request may still fail when the service is gone.
  const std::shared_ptr<const rpc::CallAccess> access_;
  const core::Caller caller_;
  const std::string request_id_;
  // The request may have ended, and the client be gone, before run() has stored it.
  std::mutex mutex_;
  std::shared_ptr<UnaryRequest<Kind>> request_;
  bool gone_ = false;
  bool finished_ = false;
  bool over_ = false;
  std::shared_ptr<UnaryCall> self_;
};

}  // namespace berth::gateway
