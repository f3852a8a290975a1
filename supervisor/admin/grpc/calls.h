#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>

#include "berth/v1/admin.grpc.pb.h"
#include "supervisor/admin/server_state.h"

namespace berth::admin {

// The streaming calls of the admin service, each in a file of its own. The reactor that is returned
// keeps itself alive until gRPC is done with it.
grpc::ServerWriteReactor<v1::LoadEvent>* start_load(grpc::CallbackServerContext& context,
                                                    ServerState& state,
                                                    const v1::LoadModelRequest& request);
// The same after lifting by hand what stands against the model.
grpc::ServerWriteReactor<v1::LoadEvent>* start_retry(grpc::CallbackServerContext& context,
                                                     ServerState& state,
                                                     const v1::LoadModelRequest& request);
grpc::ServerWriteReactor<v1::LogChunk>* start_read_log(grpc::CallbackServerContext& context,
                                                       ServerState& state,
                                                       const v1::ReadLogRequest& request);
grpc::ServerWriteReactor<v1::Event>* start_watch_events(grpc::CallbackServerContext& context,
                                                        ServerState& state,
                                                        const v1::WatchEventsRequest& request);

}  // namespace berth::admin
