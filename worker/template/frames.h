#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"
#include "worker/template/chat_request.h"
#include "worker/template/flat_conversation.h"
#include "worker/template/rendered_prompt.h"

namespace berth::worker {

// What a worker and its berth-template say to each other: frames of a length (4 bytes, little
// endian) and as many bytes. Both are of one build, so there is no version; the worker does not
// trust what it reads, as a hostile template may have taken the other side over.
struct FrameBounds {
  static constexpr std::size_t kHeader = 4;
  static constexpr std::size_t kRequest = std::size_t{56} << 20U;
  static constexpr std::size_t kAnswer = std::size_t{40} << 20U;
  static constexpr std::uint32_t kItems = 100000;  // of one list
};

// --- requests

// Once, before all others: the template, and the texts of the vocabulary's control tokens.
struct TemplateSetup {
  std::string source;
  std::string bos;
  std::string eos;
  std::vector<std::string> control_texts;
};
struct RenderCall {
  ChatRequest request;  // within the frame
};
struct FlattenCall {
  ChatRequest request;
};
using TemplateCall = std::variant<TemplateSetup, RenderCall, FlattenCall>;

// Both return a whole frame. What it holds must be within its bounds (input_bounds.h).
std::string encode_setup(const TemplateSetup& setup);
std::string encode_request(const ChatRequest& request, bool flatten);
// `body` without the length. Errors: kInternal.
Result<TemplateCall> decode_call(std::string_view body);

// --- answers

struct SetupDone {};
using TemplateAnswer = std::variant<SetupDone, RenderedPrompt, FlatConversation, Error>;

std::string encode_answer(const TemplateAnswer& answer);
// What an error says is made fit for one line, its reason one that rendering has.
Result<TemplateAnswer> decode_answer(std::string_view body);

// Bytes that a frame of this header has behind it.
std::size_t frame_size(std::string_view header);

}  // namespace berth::worker
