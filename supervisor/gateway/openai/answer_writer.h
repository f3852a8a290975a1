#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/generation.h"
#include "supervisor/gateway/generation.h"

namespace berth::gateway::openai {

// What stands in every piece of one answer.
struct AnswerHead {
  std::string request_id;
  std::string model;         // the catalogue's name of what generates it
  std::int64_t created = 0;  // Unix seconds
  bool logprobs = false;     // the request asked for them
  bool include_usage = false;
  bool parallel_tool_calls = true;
};

// One answer as OpenAI writes it: as a stream of pieces, or collected and written once. No thread
// of its own; one call at a time. Pieces are appended as text, without a tree of values.
class AnswerWriter {
 public:
  AnswerWriter() = default;
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;
  virtual ~AnswerWriter() = default;

  // Appends the next piece of a stream, "data: {…}\n\n"; nothing where the event shows nothing.
  virtual void write(const core::TokenEvent& token, std::string& out) = 0;
  // Appends the last pieces: the reason, the usage where it was asked for, [DONE].
  virtual void write_end(const Finished& finished, std::string& out) = 0;

  // Keeps the next piece of an answer that is sent at once. Returns the bytes that are kept.
  virtual std::size_t collect(core::TokenEvent token) = 0;
  virtual std::string whole(const Finished& finished) = 0;
};

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerHead head);
std::unique_ptr<AnswerWriter> make_completion_writer(AnswerHead head);

}  // namespace berth::gateway::openai
