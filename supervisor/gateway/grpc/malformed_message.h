#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

namespace berth::gateway {

// gRPC 1.51 ends a call whose message it cannot read with UNIMPLEMENTED and no text, before any
// code of ours. This makes an invalid_argument of it, with its detail, that says what to look for.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> explain_malformed_messages();

}  // namespace berth::gateway
