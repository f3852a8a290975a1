#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/lanes/job.h"

namespace berth::worker {

struct CheckedRequest {
  std::unique_ptr<Job> job;  // stop texts and max_tokens; the rest stays empty
  SamplingSettings sampling;
};
// Everything of a request but its input and its format. Errors: kInvalidArgument with the field,
// its value and what was expected.
Result<CheckedRequest> check_request(const v1::GenerateRequest& request, const EngineFacts& facts);

// Token ids that a client sent in `param`. Errors: kInvalidArgument, names the first bad one.
Result<std::vector<TokenId>> check_tokens(const google::protobuf::RepeatedField<std::int32_t>& ids,
                                          std::uint32_t vocabulary, std::string_view param);

// Errors: kInvalidArgument with the offset of the first byte that is not UTF-8.
Status check_utf8(std::string_view text, std::string_view param);

// Errors: kInvalidArgument where the prompt has no token; kWindowExceeded (T93) with both numbers
// where prompt and one token of answer need more than the window. Nothing is ever cut.
Status check_window(std::size_t prompt_tokens, std::uint32_t window);

// Before a text is tokenized: kWindowExceeded where even the fewest tokens that it can have would
// be too many, so that an absurd prompt costs neither time nor memory. `token_bytes_bound` is
// TokenBytes::bound; 0 is not known: no error.
Status check_text_length(std::string_view text, std::uint32_t token_bytes_bound,
                         std::uint32_t window);

}  // namespace berth::worker
