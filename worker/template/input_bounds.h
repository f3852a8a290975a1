#pragma once

#include <cstddef>
#include <string_view>

#include "common/result.h"
#include "worker/template/chat_request.h"
#include "worker/template/frames.h"

namespace berth::worker {

// Bounds of what berth-template is sent. Both sides check them: berth-template trusts nobody, and
// the worker because a frame could not hold more, so that nothing but the end of berth-template
// would be seen of it.

// One JSON text from a client.
struct JsonBounds {
  static constexpr std::size_t kBytes = std::size_t{16} << 20U;
  static constexpr std::size_t kElements = 10000;  // of the outermost array or object
  static constexpr int kDepth = 64;                // of arrays and objects
};

// What a template may have so that parsing it cannot overflow the stack: minja's parser goes down
// with every bracket, block and operator, and its regular expressions with every character of what
// they match.
struct TemplateBounds {
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  static constexpr int kDepth = 200;                                // of brackets, of blocks
  static constexpr std::size_t kTagBytes = std::size_t{16} << 10U;  // of one {{ }} or {% %}
  // Characters in a row that are white space, commas or parts of names.
  static constexpr std::size_t kRunBytes = std::size_t{16} << 10U;
};

// Texts of a model's vocabulary: those of its control tokens, and what begins and ends a prompt.
struct ControlBounds {
  static constexpr std::size_t kTexts = FrameBounds::kItems;
  static constexpr std::size_t kBytes = std::size_t{16} << 20U;  // all together
};

// The names of a request's fields in errors.
constexpr std::string_view kMessagesParam = "chat.messages_json";
constexpr std::string_view kToolsParam = "chat.tools_json";
constexpr std::string_view kVariablesParam = "chat.template_variables_json";

// Each says the size, the bound and what to do.
// Errors: kInvalidArgument for `param`; `what` names the text in the message ("The messages").
Status check_json_bytes(std::string_view text, std::string_view param, std::string_view what);
Status check_request_bytes(const ChatRequest& request);
// Errors: kTemplateFailed.
Status check_template_bytes(std::string_view source);
Status check_vocabulary_texts(const TemplateSetup& setup);

}  // namespace berth::worker
