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
// ,"usage":null where a later piece has it; what every piece but the last has behind its choices.
void append_piece_end(std::string& out, const AnswerHead& head);
// Behind the choices of a stream's last piece with some: timings, the piece with the usage where it
// was asked for, [DONE]. `piece`: how every piece begins.
void append_stream_end(std::string& out, const AnswerHead& head, const std::string& piece,
                       const core::DoneEvent& done);
// Behind the choices of an answer that is sent at once.
void append_answer_end(std::string& out, const core::DoneEvent& done);
void append_whole(std::string& out, std::uint64_t number);
// A logarithm that is minus infinity is -9999, as OpenAI has it.
void append_logprob(std::string& out, float logprob);
// [{"token","logprob","bytes","top_logprobs":[…]},…]: those of a chat.
void append_chat_logprobs(std::string& out, const std::vector<core::TokenLogprobs>& logprobs);

}  // namespace berth::gateway::openai
