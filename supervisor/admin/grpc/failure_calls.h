#pragma once

#include <grpcpp/support/server_callback.h>

#include "berth/v1/admin.pb.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/server_state.h"

namespace berth::admin {

// The ledger's calls that read. What stands comes from the ledger itself, which knows it also while
// the store keeps nothing; the rest from the store. `response` and the context outlive the reactor.
grpc::ServerUnaryReactor* start_list_failures(grpc::CallbackServerContext& context,
                                              ServerState& state, CallFrom from,
                                              const v1::ListFailuresRequest& request,
                                              v1::ListFailuresResponse& response);
grpc::ServerUnaryReactor* start_explain(grpc::CallbackServerContext& context, ServerState& state,
                                        CallFrom from, const v1::ExplainModelRequest& request,
                                        v1::ModelReport& response);

}  // namespace berth::admin
