#pragma once

#include <string_view>

#include "common/result.h"
#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"
#include "supervisor/core/tokenizing.h"

namespace berth::gateway {

inline constexpr std::size_t kMaxRequestIdBytes = 128;
inline constexpr std::size_t kMaxUserBytes = 256;
inline constexpr std::size_t kMaxModelNameBytes = 512;
inline constexpr std::size_t kMaxStops = 16;
inline constexpr std::uint32_t kMaxTopLogprobs = 20;
inline constexpr std::size_t kMaxStopBytes = 1024;
// Those of the worker, which knows some more that take the model.
inline constexpr std::size_t kMaxEmbedInputs = 2048;
inline constexpr std::size_t kMaxTextBytes = 4ULL << 20U;
inline constexpr std::size_t kMaxDetokenizeIds = 1ULL << 20U;
// Of a prompt, and of all inputs of one request for vectors together.
inline constexpr std::size_t kMaxPromptIds = 1ULL << 20U;
// That of the worker.
inline constexpr std::size_t kMaxBiases = 4096;

// Checks everything about a request that can be known without the model, whatever protocol it came
// by. Errors: kInvalidArgument with `param`.
Status validate(const core::GenerateRequest& request);
Status validate(const core::EmbedRequest& request);
Status validate(const core::TokenizeRequest& request);
Status validate(const core::DetokenizeRequest& request);

// 1 to 128 of [A-Za-z0-9._:-].
Status validate_request_id(std::string_view id);

// Well-formed UTF-8, else an error that names the field and the byte.
Status validate_utf8(std::string_view text, std::string_view field);

}  // namespace berth::gateway
