#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "berth/v1/admin.grpc.pb.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/rpc/call_access.h"

namespace berth::admin {

// Who makes a call of the admin service.
struct CallFrom {
  core::Caller caller;
  std::shared_ptr<const rpc::CallAccess> access;

  // What he is told of an error.
  [[nodiscard]] v1::ErrorDetail detail(const Error& error) const {
    return rpc::detail_for(*access, caller, error, {});
  }
};

// The streaming calls of the admin service, each in a file of its own. The reactor that is returned
// keeps itself alive until gRPC is done with it.
grpc::ServerWriteReactor<v1::LoadEvent>* start_load(grpc::CallbackServerContext& context,
                                                    ServerState& state, CallFrom from,
                                                    const v1::LoadModelRequest& request);
// The same after lifting by hand what stands against the model.
grpc::ServerWriteReactor<v1::LoadEvent>* start_retry(grpc::CallbackServerContext& context,
                                                     ServerState& state, CallFrom from,
                                                     const v1::LoadModelRequest& request);
grpc::ServerWriteReactor<v1::LogChunk>* start_read_log(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::ReadLogRequest& request);
grpc::ServerWriteReactor<v1::Event>* start_watch_events(grpc::CallbackServerContext& context,
                                                        ServerState& state, CallFrom from,
                                                        const v1::WatchEventsRequest& request);
grpc::ServerWriteReactor<v1::State>* start_watch_state(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::WatchStateRequest& request);

}  // namespace berth::admin
