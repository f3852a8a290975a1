#pragma once

#include "supervisor/gateway/openai/fields.h"
#include "supervisor/gateway/openai/requests.h"

namespace berth::gateway::openai {

// The parts of a request that several routes read alike. What is wrong goes to the fields' errors.

// "model" and "user".
void read_names(const Fields& body, std::string& model, std::string& user);
// Everything about how tokens are chosen: temperature, seed, penalties, logit_bias, …
void read_sampling(const Fields& body, core::Sampling& to);
// stream, stream_options, stop, n, max_tokens and the other name that it has.
void read_bounds(const Fields& body, std::string_view max_tokens, TextRequest& to);
// response_format and grammar.
void read_format(const Fields& body, core::OutputFormat& to);
// messages; tools, tool_choice and parallel_tool_calls.
void read_messages(const Fields& body, core::ChatInput& to);
void read_tools(const Fields& body, TextRequest& to, core::ChatInput& chat);
// A list that holds nothing but the ids of tokens. `path` names it.
std::vector<std::int32_t> read_token_ids(const boost::json::array& list, const std::string& path,
                                         FirstError& errors);

}  // namespace berth::gateway::openai
