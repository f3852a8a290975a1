#pragma once

#include <optional>

#include "berth/v1/worker.pb.h"
#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"
#include "supervisor/core/tokenizing.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// Between the supervisor's plain types and the worker's messages.

v1::GenerateRequest to_proto(const core::GenerateRequest& request);
v1::EmbedRequest to_proto(const core::EmbedRequest& request);
v1::TokenizeRequest to_proto(const core::TokenizeRequest& request);
v1::DetokenizeRequest to_proto(const core::DetokenizeRequest& request);

// Take what they can out of the message.
core::Embeddings from_proto(v1::EmbedResponse& response);
core::Tokens from_proto(v1::TokenizeResponse& response);
core::TokenCount from_proto(const v1::CountTokensResponse& response);
core::DetokenizedText from_proto(v1::DetokenizeResponse& response);

// Nothing for events that say nothing to the supervisor (accepted, error: the status says it).
std::optional<core::GenerateEvent> from_proto(v1::GenerateEvent& event);

WorkerProgress from_proto(const v1::Progress& progress);
WorkerReady from_proto(const v1::Ready& ready);

}  // namespace berth::rpc
