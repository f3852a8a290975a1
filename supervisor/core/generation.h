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
  std::string tool_choice_json{};         // as OpenAI's `tool_choice`, or empty
  std::string template_variables_json{};  // an object, or empty
  bool raw_answer = false;                // tool calls and reasoning stay in the text
};
struct PromptInput {
  std::string text;  // well-formed UTF-8
};
struct TokenInput {
  std::vector<std::int32_t> ids;
};

struct LogitBias {
  std::int32_t token = 0;
  float bias = 0;  // -100 to 100; at most -100 bans the token
};

// Absent: the worker's default.
struct Sampling {
#define BERTH_SAMPLING_FIELD(type, name) std::optional<type> name;
#include "supervisor/core/sampling_fields.def"
#undef BERTH_SAMPLING_FIELD
  std::vector<std::string> dry_breakers;
  std::vector<LogitBias> logit_bias;
};

// What the answer must look like.
struct JsonObjectFormat {};
struct JsonSchemaFormat {
  std::string schema;  // JSON
};
struct GrammarFormat {
  std::string gbnf;
};
using OutputFormat =
    std::variant<std::monostate, JsonObjectFormat, JsonSchemaFormat, GrammarFormat>;

struct GenerateRequest {
  std::string request_id;
  std::string user{};         // subdivides the caller's tenant; at most 256 bytes
  std::string cache_scope{};  // requests share cached prefixes only with those of the same (S8)
  std::string model;          // the catalogue's name, aliases resolved
  std::variant<ChatInput, PromptInput, TokenInput> input;
  Sampling sampling;
  std::optional<std::uint32_t> max_tokens;
  std::vector<std::string> stop;  // at most 16 of at most 1024 bytes
  OutputFormat format;
  std::optional<std::uint32_t> top_logprobs;  // 0 to 20
};

struct PrefillEvent {
  std::uint32_t done = 0;   // tokens
  std::uint32_t total = 0;  // tokens
};
struct TokenLogprob {
  std::int32_t id = 0;
  float logprob = 0;  // natural logarithm
  std::string text;   // the token's bytes, which may be a part of a character
};
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  // the likeliest first
};
// A piece of a call of a tool.
struct ToolCall {
  std::uint32_t index = 0;
  std::string id;         // with `name` only in the first piece
  std::string name;       //
  std::string arguments;  // the next piece of their JSON text
};
struct TokenEvent {
  std::string text;  // whole UTF-8 characters
  std::vector<std::int32_t> ids;
  std::vector<TokenLogprobs> logprobs{};  // one for each id, or none
  std::string reasoning{};                // whole UTF-8 characters, not part of `text`
  std::vector<ToolCall> tool_calls{};
};
struct Usage {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
  std::uint32_t cached_tokens = 0;
  std::uint32_t drafted_tokens = 0;
  std::uint32_t accepted_tokens = 0;
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
  std::string finish_reason;  // stop | length | tool_calls
  std::string stop_text;
  Usage usage;
  Timings timings;
};

// What a worker's stream says. Exactly one DoneEvent or Error ends it.
using GenerateEvent = std::variant<PrefillEvent, TokenEvent, DoneEvent>;

}  // namespace berth::core
