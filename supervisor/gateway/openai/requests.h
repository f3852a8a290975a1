#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <string>

#include "common/result.h"
#include "supervisor/core/embedding.h"
#include "supervisor/core/generation.h"

namespace berth::gateway::openai {

// What OpenAI's requests ask for. docs/api.md has the table of fields. Readers are pure: any
// thread. Unknown fields are ignored, as OpenAI does.

// POST /v1/chat/completions and /v1/completions.
struct TextRequest {
  core::GenerateRequest generate;  // request_id is left empty
  bool stream = false;
  bool include_usage = false;       // a stream ends with a piece that has the usage
  bool parallel_tool_calls = true;  // false: only the first call is passed on
};

// POST /v1/embeddings.
struct EmbeddingRequest {
  core::EmbedRequest embed;  // request_id is left empty
  bool base64 = false;       // numbers as base64 of little-endian floats, else as JSON
};

// Which model a body is for. Errors: kInvalidArgument ("model").
Result<std::string> read_model(const boost::json::object& body);

// Errors of all: kInvalidArgument with the field's name as OpenAI writes it
// ("messages[0].content[1].type").
Result<TextRequest> read_chat_request(const boost::json::object& body);
Result<TextRequest> read_completion_request(const boost::json::object& body);
Result<EmbeddingRequest> read_embedding_request(const boost::json::object& body);

// The answer would have more than kMaxWholeAnswer bytes: `count` vectors of that length. `param`:
// the field that is to blame.
Error too_many_embeddings(std::string param, std::size_t count, std::size_t length);

// An error of what comes behind the readers (gateway/validate.h, the worker), which knows fields by
// berth's own names, with OpenAI's names instead.
Error with_openai_names(const Error& error);

}  // namespace berth::gateway::openai
