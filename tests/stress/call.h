#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/v1/inference.pb.h"

namespace berth::stress {

using Milliseconds = std::chrono::milliseconds;

struct GenerateCall {
  v1::GenerateRequest request;
  // What was made wrong on purpose; empty: nothing was.
  std::string wrong;
};

// Of a text whose answer is known.
struct CanaryCall {
  std::size_t which = 0;
  std::string scope;
};

struct EmbedCall {
  v1::EmbedRequest request;
};
// Tokenize and CountTokens, whose numbers must be the same.
struct TokenizeCall {
  v1::TokenizeRequest request;
};
struct DetokenizeCall {
  v1::DetokenizeRequest request;
};

// How the client behaves.
struct Manners {
  std::optional<Milliseconds> deadline;      // of the gRPC call
  std::optional<Milliseconds> cancel_after;  // from the start of the call
  // It waits so long before it reads on, for so many of the first events.
  Milliseconds pause{0};
  std::uint32_t pauses = 0;
};

// One call of a run. Seed, thread and number say all of it.
struct Call {
  std::string id;  // "seed.thread.number"
  std::variant<GenerateCall, CanaryCall, EmbedCall, TokenizeCall, DetokenizeCall> what;
  Manners manners;
};

// Of the worker that is called.
struct Target {
  std::uint32_t window = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t embedding_size = 0;
  bool generates = true;
  bool drafts = false;
  bool ambiguous_grammars = false;
  std::size_t canaries = 0;  // how many there are
};

// For people: the kind and the request, cut.
std::string describe(const Call& call);
std::string kind_of(const Call& call);

}  // namespace berth::stress
