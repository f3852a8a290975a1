#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/result.h"

namespace berth::core {

// A generation as the supervisor knows it, free of any protocol's types. gateway/ makes it from
// what a client sent, rpc/ turns it into the worker's message.

struct ChatInput {
  std::string messages_json;  // a JSON array, well-formed UTF-8
  std::string tools_json{};   // a JSON array or empty
  bool add_generation_prompt = true;
};
struct PromptInput {
  std::string text;  // well-formed UTF-8
};
struct TokenInput {
  std::vector<std::int32_t> ids;
};

// Absent: the worker's default.
struct Sampling {
  std::optional<float> temperature;    // 0 to 100; 0 = greedy
  std::optional<std::uint32_t> top_k;  // 0 = off
  std::optional<float> top_p;          // above 0, to 1
  std::optional<std::uint32_t> seed;
};

struct GenerateRequest {
  std::string request_id;
  std::string model;  // the catalogue's name, aliases resolved
  std::variant<ChatInput, PromptInput, TokenInput> input;
  Sampling sampling;
  std::optional<std::uint32_t> max_tokens;
  std::vector<std::string> stop;  // at most 16 of at most 1024 bytes
};

struct PrefillEvent {
  std::uint32_t done = 0;   // tokens
  std::uint32_t total = 0;  // tokens
};
struct TokenEvent {
  std::string text;  // whole UTF-8 characters
  std::vector<std::int32_t> ids;
};
struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
};
// Microseconds.
struct Timings {
  std::uint64_t queue_us = 0;
  std::uint64_t load_us = 0;
  std::uint64_t prefill_us = 0;
  std::uint64_t decode_us = 0;
  std::uint64_t first_token_us = 0;
};
struct DoneEvent {
  std::string finish_reason;  // stop | length
  std::string stop_text;
  Usage usage;
  Timings timings;
};

// What a worker's stream says. Exactly one DoneEvent or Error ends it.
using GenerateEvent = std::variant<PrefillEvent, TokenEvent, DoneEvent>;

}  // namespace berth::core
