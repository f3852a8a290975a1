#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <atomic>
#include <memory>

namespace berth::gateway {

// Counts a server's calls that run: each from its arrival until gRPC is done with it.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> count_calls(
    std::shared_ptr<std::atomic<int>> running);

}  // namespace berth::gateway
