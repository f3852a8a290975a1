#pragma once

#include <memory>
#include <string>

#include "common/result.h"
#include "supervisor/core/embedding.h"
#include "supervisor/gateway/openai/exchange.h"
#include "supervisor/gateway/openai/requests.h"
#include "supervisor/residency/services.h"

namespace berth::gateway::openai {

// {"object":"list","data":[…],"model":…,"usage":…}, of at most kMaxWholeAnswer bytes. Errors:
// kInvalidArgument.
Result<std::string> embeddings_json(const core::Embeddings& embeddings, const std::string& model,
                                    bool base64);

// Asks for the embeddings and sends them. Core strand. Returns who has to hear of the client.
std::shared_ptr<Handler> start_embedding_answer(const residency::Services& services,
                                                Exchange exchange, EmbeddingRequest request);

}  // namespace berth::gateway::openai
