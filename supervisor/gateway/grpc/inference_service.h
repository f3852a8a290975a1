#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "berth/v1/inference.grpc.pb.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/call_access.h"

namespace berth::gateway {

// berth.v1.Inference. Its methods run on gRPC's threads and only post to the core strand. Must
// outlive the server that it is registered with; `services` must outlive every call.
class InferenceService : public v1::Inference::CallbackService {
 public:
  InferenceService(residency::Services services, rpc::CallAccess access);

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
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

 private:
  [[nodiscard]] Result<core::Caller> caller_of(const grpc::CallbackServerContext& context) const;
  // A call was refused before it became a request.
  void note_refused(const std::string& id, const Result<core::Caller>& caller,
                    const std::string& model, const Error& error) const;
  // Parses and starts a call with one answer, or refuses it.
  template <typename Kind, typename Message, typename Response>
  grpc::ServerUnaryReactor* ask(grpc::CallbackServerContext& context, const Message& message,
                                std::uint64_t asked_ms, Response& response);

  const residency::Services services_;
  const std::shared_ptr<const rpc::CallAccess> access_;  // its calls outlive this
};

}  // namespace berth::gateway
