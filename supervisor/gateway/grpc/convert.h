#pragma once

#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/core/tokenizing.h"
#include "supervisor/gateway/generation.h"
#include "supervisor/residency/residency.h"

namespace berth::gateway {

// Between the public messages and the supervisor's plain types.

// Validated. An absent request id stays empty. Errors: kInvalidArgument with `param`.
Result<core::GenerateRequest> from_proto(const v1::GenerateRequest& request);
Result<core::EmbedRequest> from_proto(const v1::EmbedRequest& request);
Result<core::TokenizeRequest> from_proto(const v1::TokenizeRequest& request);
Result<core::DetokenizeRequest> from_proto(const v1::DetokenizeRequest& request);

// An answer into its response. `model`: the catalogue's name.
void put_answer(core::Embeddings answer, const std::string& model, const std::string& request_id,
                v1::EmbedResponse& response);
void put_answer(core::Tokens answer, const std::string& model, const std::string& request_id,
                v1::TokenizeResponse& response);
void put_answer(core::TokenCount answer, const std::string& model, const std::string& request_id,
                v1::CountTokensResponse& response);
void put_answer(core::DetokenizedText answer, const std::string& model,
                const std::string& request_id, v1::DetokenizeResponse& response);

// A claim's progress as the stream shows it: queued or loading.
v1::GenerateEvent to_event(const residency::ClaimProgress& progress);
v1::GenerateEvent to_event(const core::PrefillEvent& prefill);
v1::GenerateEvent to_event(core::TokenEvent token);
v1::GenerateEvent to_event(const Finished& finished);

// As the caller may see it: path and problem are for admins.
v1::Model to_proto(const catalog::Model& model, const residency::ModelNow& now,
                   const core::Caller& caller);
// Gives each of the models the failure that stands against it; one that is not loaded has then
// failed.
void put_failures(const std::vector<core::FailureRecord>& standing, const core::Caller& caller,
                  v1::ListModelsResponse& to);

}  // namespace berth::gateway
