#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>
#include <utility>

#include "berth/v1/admin.grpc.pb.h"
#include "common/result.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/rpc/call_access.h"

namespace berth::admin {

// berth.v1.Admin. Its methods run on gRPC's threads and only post to the core strand or the pool.
// Must outlive the server that it is registered with; `state` must outlive every call.
// Whatever changes something, and whatever tells of paths, settings, log text or the requests of
// others, is for admins; the rest is cut to what a client may see.
class AdminService : public v1::Admin::CallbackService {
 public:
  AdminService(ServerState& state, rpc::CallAccess access)
      : state_(state), access_(std::make_shared<const rpc::CallAccess>(std::move(access))) {}

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
  grpc::ServerUnaryReactor* GetState(grpc::CallbackServerContext* context,
                                     const v1::GetStateRequest* request,
                                     v1::State* response) override;
  grpc::ServerWriteReactor<v1::State>* WatchState(grpc::CallbackServerContext* context,
                                                  const v1::WatchStateRequest* request) override;
  grpc::ServerUnaryReactor* PlanModel(grpc::CallbackServerContext* context,
                                      const v1::PlanModelRequest* request,
                                      v1::ModelPlan* response) override;
  grpc::ServerUnaryReactor* GetMemory(grpc::CallbackServerContext* context,
                                      const v1::GetMemoryRequest* request,
                                      v1::Memory* response) override;
  grpc::ServerUnaryReactor* PinModel(grpc::CallbackServerContext* context,
                                     const v1::PinModelRequest* request,
                                     v1::PinModelResponse* response) override;
  grpc::ServerUnaryReactor* UnpinModel(grpc::CallbackServerContext* context,
                                       const v1::UnpinModelRequest* request,
                                       v1::UnpinModelResponse* response) override;
  grpc::ServerUnaryReactor* CancelRequest(grpc::CallbackServerContext* context,
                                          const v1::CancelRequestRequest* request,
                                          v1::CancelRequestResponse* response) override;

 private:
  // Who makes the call, or how it is refused: unknown callers, those whose key has no room, unless
  // `limited` is false, and, where `admins_do` is not empty, everybody but admins.
  Result<CallFrom> from(const grpc::CallbackServerContext& context,
                        const std::string& admins_do = {}, bool limited = true) const;
  // The reactor of a call with one answer that is refused.
  grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext& context, const Error& error) const;
  template <typename Message>
  grpc::ServerWriteReactor<Message>* refuse_stream(grpc::CallbackServerContext& context,
                                                   const Error& error) const;

  ServerState& state_;
  const std::shared_ptr<const rpc::CallAccess> access_;  // its calls outlive this
};

}  // namespace berth::admin
