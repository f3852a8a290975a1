#pragma once

#include <cstdint>
#include <memory>

#include "supervisor/core/tokenizing.h"
#include "supervisor/gateway/unary_request.h"

namespace berth::gateway {

struct TokenizingKind {
  using Request = core::TokenizeRequest;
  using Answer = core::Tokens;

  static Status fits(const catalog::Model& /*model*/) { return {}; }
  static std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, const Request& request,
                                               SteadyTime deadline, rpc::OnAnswer<Answer> done) {
    return worker.tokenize(request, deadline, std::move(done));
  }
  static std::uint32_t prompt_tokens(const Answer& answer) {
    return static_cast<std::uint32_t>(answer.ids.size());
  }
};

struct TokenCountingKind {
  using Request = core::TokenizeRequest;
  using Answer = core::TokenCount;

  static Status fits(const catalog::Model& /*model*/) { return {}; }
  static std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, const Request& request,
                                               SteadyTime deadline, rpc::OnAnswer<Answer> done) {
    return worker.count_tokens(request, deadline, std::move(done));
  }
  static std::uint32_t prompt_tokens(const Answer& answer) { return answer.tokens; }
};

struct DetokenizingKind {
  using Request = core::DetokenizeRequest;
  using Answer = core::DetokenizedText;

  static Status fits(const catalog::Model& /*model*/) { return {}; }
  static std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, const Request& request,
                                               SteadyTime deadline, rpc::OnAnswer<Answer> done) {
    return worker.detokenize(request, deadline, std::move(done));
  }
  static std::uint32_t prompt_tokens(const Answer& /*answer*/) { return 0; }
};

// The ways of questions about a model's vocabulary; its worker answers, so each loads it.
using Tokenizing = UnaryRequest<TokenizingKind>;
using TokenCounting = UnaryRequest<TokenCountingKind>;
using Detokenizing = UnaryRequest<DetokenizingKind>;

}  // namespace berth::gateway
