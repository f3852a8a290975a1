#pragma once

#include "common/result.h"
#include "supervisor/core/generation.h"
#include "supervisor/rpc/forward.h"

namespace berth::rpc {

// A generation as a request to an OpenAI-compatible program, whose answer is to be a stream. What
// OpenAI has no name for goes by the names that llama-server and vLLM have. Errors:
// kInvalidArgument for what no such program can be asked for, and for JSON of the client's that is
// none, or not of its type: no member can be put in that way (S8).
Result<ForwardRequest> generation_body(const core::GenerateRequest& request);

}  // namespace berth::rpc
