#pragma once

#include <cstdint>
#include <memory>

#include "supervisor/gateway/http/exchange.h"
#include "supervisor/gateway/openai/exchange.h"
#include "supervisor/gateway/openai/requests.h"
#include "supervisor/residency/services.h"

namespace berth::gateway::openai {

enum class AnswerKind : std::uint8_t { kChat, kCompletion };

// Generates the answer to a request and sends it, as a stream or at once. Core strand. Returns who
// has to hear of the client.
std::shared_ptr<Handler> start_text_answer(const residency::Services& services, AnswerKind kind,
                                           Exchange exchange, TextRequest request);

}  // namespace berth::gateway::openai
