#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>

#include "common/clock.h"

namespace berth::rpc {

// When a call must have ended: the earlier of the gRPC deadline and `asked_ms` from now (0: not
// asked), at most a day ahead.
SteadyTime deadline_of(const grpc::CallbackServerContext& context, std::uint64_t asked_ms,
                       const Clock& clock);

}  // namespace berth::rpc
