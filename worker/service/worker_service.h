#pragma once

#include <atomic>
#include <memory>

#include "berth/v1/worker.grpc.pb.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/control_hub.h"
#include "worker/service/pauses.h"
#include "worker/service/preparer.h"
#include "worker/service/unary_call.h"

namespace berth::worker {

// berth.v1.Worker. Owns nothing; gRPC's threads.
class WorkerService final : public v1::Worker::CallbackService {
 public:
  WorkerService(ControlHub& hub, Preparer& preparer, LaneRunner& runner)
      : hub_(hub), preparer_(preparer), runner_(runner) {}

  // Calls, besides Control's, whose last word is not sent yet. Any thread.
  [[nodiscard]] int open_calls() const { return open_calls_.load(); }
  // Any thread.
  [[nodiscard]] const Pauses& pauses() const { return pauses_; }

  grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* Control(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const v1::EmbedRequest* request,
                                  v1::EmbedResponse* response) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const v1::DetokenizeRequest* request,
                                       v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* CountTokens(grpc::CallbackServerContext* context,
                                        const v1::TokenizeRequest* request,
                                        v1::CountTokensResponse* response) override;

 private:
  void on_change();
  // Gives the call to the preparer, or refuses it before Ready.
  template <typename Call>
  void begin(const std::shared_ptr<Call>& call);
  grpc::ServerUnaryReactor* begin_unary(grpc::CallbackServerContext& context,
                                        UnaryCall::Setup setup);

  ControlHub& hub_;
  Preparer& preparer_;
  LaneRunner& runner_;
  std::atomic<int> open_calls_{0};
  Pauses pauses_;
};

}  // namespace berth::worker
