#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/answer/call_writer.h"
#include "worker/answer/marker_finder.h"

namespace berth::worker {

// Reads an answer in OpenAI's harmony format (gpt-oss): messages, each with a header that names a
// channel and perhaps a recipient, and a body. The channel "analysis" is reasoning, a recipient
// "functions.NAME" of a known tool makes the body the arguments of a call, all else is content.
// https://cookbook.openai.com/articles/openai-harmony describes the format. Headers are framing and
// never passed on, but for those of an unknown recipient. What has no header is content.
class HarmonyReader {
 public:
  // Between the start of a message and its body; longer texts are content.
  static constexpr std::size_t kMaxHeaderBytes = 1024;

  explicit HarmonyReader(bool starts_in_reasoning);

  void push(std::string_view text, CallWriter& writer, AnswerDelta& out);
  void finish(CallWriter& writer, AnswerDelta& out);

 private:
  enum class State : std::uint8_t { kHeader, kBody };
  enum class Body : std::uint8_t { kContent, kReasoning, kCall, kUnknownCall };

  // Each returns how many bytes it took; 0 of kBody: the rest may become a marker.
  std::size_t push_header(std::string_view text, CallWriter& writer, AnswerDelta& out);
  std::size_t push_body(std::string_view text, CallWriter& writer, AnswerDelta& out);
  void begin_body(CallWriter& writer, AnswerDelta& out);
  void end_body(CallWriter& writer, AnswerDelta& out);
  void emit(std::string_view text, CallWriter& writer, AnswerDelta& out);

  MarkerFinder ends_;
  State state_ = State::kHeader;
  Body body_ = Body::kContent;
  bool call_is_empty_ = false;
  std::string held_;     // a header so far
  std::string pending_;  // start of a marker
};

}  // namespace berth::worker
