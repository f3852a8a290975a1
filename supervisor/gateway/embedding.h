#pragma once

#include <cstdint>
#include <memory>

#include "supervisor/core/embedding.h"
#include "supervisor/gateway/unary_request.h"

namespace berth::gateway {

struct EmbeddingKind {
  using Request = core::EmbedRequest;
  using Answer = core::Embeddings;

  // Errors: kInvalidArgument where the model is not served for embeddings.
  static Status fits(const catalog::Model& model);
  static std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, const Request& request,
                                               SteadyTime deadline, rpc::OnAnswer<Answer> done) {
    return worker.embed(request, deadline, std::move(done));
  }
  static std::uint32_t prompt_tokens(const Answer& answer) { return answer.prompt_tokens; }
};

// The way of one request for embeddings.
using Embedding = UnaryRequest<EmbeddingKind>;
using EmbeddingResponder = Embedding::Responder;

}  // namespace berth::gateway
