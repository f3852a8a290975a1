#pragma once

#include <memory>

#include "common/clock.h"
#include "supervisor/rpc/command_call.h"
#include "supervisor/rpc/forward.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// Asks a program for a generation, and makes our events of its answer, be that a stream or, where
// it knows none, whole. `request`: of generation_body().
std::unique_ptr<CommandReader> generate_reader(Clock& clock, ForwardRequest request,
                                               std::shared_ptr<GenerateSink> sink);

}  // namespace berth::rpc
