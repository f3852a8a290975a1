#pragma once

#include <memory>

#include "supervisor/rpc/command_call.h"
#include "supervisor/rpc/forward.h"

namespace berth::rpc {

// Passes a client's request on to a program, and its answer back.
std::unique_ptr<CommandReader> forward_reader(ForwardRequest request,
                                              std::shared_ptr<ForwardSink> sink);

}  // namespace berth::rpc
