#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "worker/service/pending_call.h"

namespace grpc {
class CallbackServerContext;
}

namespace berth::worker {

// The server's side of one call with one answer, which is made by a preparer's thread, and perhaps
// the context thread after it. gRPC's threads call the On… functions. Lives until gRPC is done with
// it (it holds itself) and its work is done (the work holds it). After create(), exactly one of
// answer() and on_end() must be called, once, else the call never ends.
class UnaryCall final : public grpc::ServerUnaryReactor,
                        public PendingCall,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  using MakeWork = std::function<std::unique_ptr<CallWork>(const std::shared_ptr<UnaryCall>&)>;
  struct Setup {
    bool needs_template = false;
    std::optional<std::uint64_t> deadline_ms = {};
    std::string request_id = {};
    // Copies the request; called at most once, while gRPC's request is still there.
    MakeWork make_work;
  };
  struct Handlers {
    // The call was cancelled.
    std::function<void()> on_change;
    // The call is over and its answer sent.
    std::function<void()> on_done;
  };
  static std::shared_ptr<UnaryCall> create(grpc::CallbackServerContext& context, Setup setup,
                                           Handlers handlers);

  // The response is complete. gRPC's response must not be touched after it.
  void answer() { Finish(grpc::Status::OK); }

  [[nodiscard]] SteadyTime arrived() const override { return arrived_; }
  [[nodiscard]] bool cancelled() const override {
    return cancelled_.load(std::memory_order_relaxed);
  }
  void on_end(JobEnd end) override;
  [[nodiscard]] bool needs_template() const override { return setup_.needs_template; }
  [[nodiscard]] std::optional<std::uint64_t> deadline_ms() const override {
    return setup_.deadline_ms;
  }
  [[nodiscard]] std::unique_ptr<CallWork> take_work() override {
    return setup_.make_work(shared_from_this());
  }

  void OnCancel() override;
  void OnDone() override;

 private:
  UnaryCall(grpc::CallbackServerContext& context, Setup setup, Handlers handlers);

  grpc::CallbackServerContext& context_;
  const Setup setup_;
  const Handlers handlers_;
  const SteadyTime arrived_;
  std::shared_ptr<UnaryCall> self_;  // until OnDone
  std::atomic<bool> cancelled_{false};
};

}  // namespace berth::worker
