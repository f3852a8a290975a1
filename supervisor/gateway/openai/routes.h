#pragma once

#include <vector>

#include "supervisor/gateway/http/exchange.h"
#include "supervisor/residency/services.h"

namespace berth::gateway::openai {

// OpenAI's API (docs/api.md): GET /v1/models and /v1/models/{name}, POST /v1/chat/completions,
// /v1/completions and /v1/embeddings. The services' references outlive the routes and every answer.
std::vector<Route> routes(const residency::Services& services);

}  // namespace berth::gateway::openai
