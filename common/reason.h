#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace berth {

// Why something failed, from the one error table (common/reasons.def).
enum class Reason : std::uint8_t {
#define BERTH_REASON(id, name, http, grpc, retry, sentence) id,
#include "common/reasons.def"
#undef BERTH_REASON
};

// Whether asking again can help.
enum class Retry : std::uint8_t {
  kNever,
  kAlways,
  kAfterCause,  // what caused it passes, or is retried, by itself
  kByHand,  // somebody decided it, or must: a client that asks again by itself works against him
};

struct ReasonInfo {
  std::string_view name;  // stable, e.g. "unknown_model"
  int http_status;        // 400 to 599
  int grpc_code;          // value of grpc::StatusCode
  Retry retry;
  std::string_view sentence;  // for an operator
};

// The row of the table. Never fails.
const ReasonInfo& reason_info(Reason reason);

// The reason of that name, or nothing.
std::optional<Reason> reason_from_name(std::string_view name);

}  // namespace berth
