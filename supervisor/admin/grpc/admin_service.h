#pragma once

#include <grpcpp/support/server_callback.h>

#include "berth/v1/admin.grpc.pb.h"
#include "supervisor/admin/server_state.h"

namespace berth::admin {

// berth.v1.Admin. Its methods run on gRPC's threads and only post to the core strand or the pool.
// Must outlive the server that it is registered with; `state` must outlive every call.
class AdminService : public v1::Admin::CallbackService {
 public:
  explicit AdminService(ServerState& state) : state_(state) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest* request,
                                          v1::ServerInfo* response) override;
  grpc::ServerUnaryReactor* ListInstances(grpc::CallbackServerContext* context,
                                          const v1::ListInstancesRequest* request,
                                          v1::ListInstancesResponse* response) override;
  grpc::ServerWriteReactor<v1::LoadEvent>* LoadModel(grpc::CallbackServerContext* context,
                                                     const v1::LoadModelRequest* request) override;
  grpc::ServerWriteReactor<v1::LoadEvent>* RetryModel(grpc::CallbackServerContext* context,
                                                      const v1::LoadModelRequest* request) override;
  grpc::ServerUnaryReactor* ListFailures(grpc::CallbackServerContext* context,
                                         const v1::ListFailuresRequest* request,
                                         v1::ListFailuresResponse* response) override;
  grpc::ServerUnaryReactor* ExplainModel(grpc::CallbackServerContext* context,
                                         const v1::ExplainModelRequest* request,
                                         v1::ModelReport* response) override;
  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context,
                                        const v1::UnloadModelRequest* request,
                                        v1::UnloadModelResponse* response) override;
  grpc::ServerWriteReactor<v1::LogChunk>* ReadLog(grpc::CallbackServerContext* context,
                                                  const v1::ReadLogRequest* request) override;
  grpc::ServerWriteReactor<v1::Event>* WatchEvents(grpc::CallbackServerContext* context,
                                                   const v1::WatchEventsRequest* request) override;
  grpc::ServerUnaryReactor* GetConfig(grpc::CallbackServerContext* context,
                                      const v1::GetConfigRequest* request,
                                      v1::EffectiveConfig* response) override;

 private:
  ServerState& state_;
};

}  // namespace berth::admin
