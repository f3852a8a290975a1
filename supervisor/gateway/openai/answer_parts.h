#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/gateway/openai/answer_writer.h"

namespace berth::gateway::openai {

// Parts that both kinds of answers have. Each appends JSON text.

// {"id":"PREFIX-…","object":"OBJECT","created":…,"model":"…","system_fingerprint":"…"
std::string opening(const AnswerHead& head, std::string_view prefix, std::string_view object);
// "usage":{…}
void append_usage(std::string& out, const core::Usage& usage);
// "timings":{…}, as llama.cpp's server has them, and berth's own.
void append_timings(std::string& out, const core::DoneEvent& done);
void append_whole(std::string& out, std::uint64_t number);
// A logarithm that is minus infinity is -9999, as OpenAI has it.
void append_logprob(std::string& out, float logprob);
// [{"token","logprob","bytes","top_logprobs":[…]},…]: those of a chat.
void append_chat_logprobs(std::string& out, const std::vector<core::TokenLogprobs>& logprobs);

}  // namespace berth::gateway::openai
