#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/inference.pb.h"
#include "common/result.h"
#include "worker/engine/engine.h"
#include "worker/service/chat_tools.h"

namespace berth::worker {

class Preparer;

// What a model reads of a raw text: names of control tokens in it are those tokens. On a preparer's
// thread. Errors: kInvalidArgument where it is not UTF-8; kWindowExceeded, before it is tokenized,
// where it cannot fit.
Result<std::vector<TokenId>> text_tokens(Preparer& preparer, const std::string& text,
                                         std::string_view param);

struct ChatPrompt {
  std::vector<TokenId> tokens;
  std::string tail;              // the last 256 bytes of its text
  bool tools_described = false;  // as in RenderedPrompt
};
// What a model reads of a chat. What users wrote becomes no control token. On the chats' thread.
// Errors: those of Preparer::render(), and as text_tokens().
Result<ChatPrompt> chat_tokens(Preparer& preparer, const v1::ChatInput& chat,
                               const ChatTools& tools);
// The same without the window's bound: kInvalidArgument where the prompt has more bytes than this.
Result<ChatPrompt> chat_tokens(Preparer& preparer, const v1::ChatInput& chat,
                               const ChatTools& tools, std::size_t max_bytes);

}  // namespace berth::worker
