#pragma once

#include <grpcpp/server_context.h>

#include <string_view>

#include "supervisor/gateway/auth/authenticator.h"

namespace berth::gateway {

// What gRPC tells of a call's caller.

// Of gRPC's name of a peer ("ipv4:127.0.0.1:4711", "ipv6:%5B::1%5D:4711"), on the network.
Peer network_peer(std::string_view name);

// What the metadata of a call says. The views are into the context.
Presented presented(const grpc::CallbackServerContext& context);

}  // namespace berth::gateway
