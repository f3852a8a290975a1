#pragma once

#include <grpcpp/support/server_callback.h>

#include "berth/v1/inference.grpc.pb.h"
#include "supervisor/residency/services.h"

namespace berth::gateway {

// berth.v1.Inference. Its methods run on gRPC's threads and only post to the core strand. Must
// outlive the server that it is registered with; `services` must outlive every call.
class InferenceService : public v1::Inference::CallbackService {
 public:
  explicit InferenceService(residency::Services services);

  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context, const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;

 private:
  const residency::Services services_;
};

}  // namespace berth::gateway
