#pragma once

#include <memory>

#include "common/result.h"
#include "supervisor/core/embedding.h"
#include "supervisor/rpc/command_call.h"
#include "supervisor/rpc/forward.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// A request for vectors as one to an OpenAI-compatible program. Errors: kInvalidArgument (texts
// and tokens in one request, for which there are no words).
Result<ForwardRequest> embedding_body(const core::EmbedRequest& request);

// Asks a program for vectors; an answer of at most 16 MiB. `body`: of embedding_body(request).
std::unique_ptr<CommandReader> embed_reader(ForwardRequest body, const core::EmbedRequest& request,
                                            OnAnswer<core::Embeddings> done);

}  // namespace berth::rpc
