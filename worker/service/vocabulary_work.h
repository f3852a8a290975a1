#pragma once

#include <memory>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/service/pending_call.h"
#include "worker/service/unary_call.h"

namespace berth::worker {

// The calls that only ask the vocabulary. All bounded, so that none holds up the others for long.
struct VocabularyBounds {
  static constexpr std::size_t kTextBytes = std::size_t{4} << 20U;  // of a text or a rendered chat
  static constexpr int kIds = 1 << 20;
  static constexpr std::size_t kAnswerBytes = std::size_t{64} << 20U;
};

// `response` is gRPC's, and written only by CallWork::deliver().
std::unique_ptr<CallWork> tokenize_work(std::shared_ptr<UnaryCall> call,
                                        const v1::TokenizeRequest& request,
                                        v1::TokenizeResponse& response);
// Counts without the bound of a window: whoever counts wants to know how much is too much.
std::unique_ptr<CallWork> count_work(std::shared_ptr<UnaryCall> call,
                                     const v1::TokenizeRequest& request,
                                     v1::CountTokensResponse& response);
std::unique_ptr<CallWork> detokenize_work(std::shared_ptr<UnaryCall> call,
                                          const v1::DetokenizeRequest& request,
                                          v1::DetokenizeResponse& response);

}  // namespace berth::worker
