#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/result.h"

namespace berth::worker {

// A model's chat template (Jinja, by minja): messages in, the prompt's text out. Parsing costs
// about a millisecond; a parsed template is used by one thread at a time. Templates come from model
// files and messages from clients: neither is trusted, and no exception leaves this class. What it
// does not bound is the time and memory of a hostile template, nor how deep its macros call each
// other; that is why rendering has a thread of its own. Calls need a large stack (kStackBytes).
class ChatTemplate {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{64} << 20U;
  static constexpr std::size_t kMaxInputBytes = std::size_t{16} << 20U;
  static constexpr std::size_t kMaxElements = 10000;  // messages, tools
  static constexpr std::size_t kMaxOutputBytes = std::size_t{16} << 20U;
  static constexpr int kMaxDepth = 64;  // of arrays and objects within messages and tools

  // `bos` and `eos` are the texts of the model's tokens, empty where it has none.
  // Errors: kTemplateFailed with what the parser says, or which of TemplateBounds is passed.
  static Result<ChatTemplate> parse(const std::string& source, const std::string& bos,
                                    const std::string& eos);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `messages_json`: an array of objects with a role and a content, as OpenAI's; content may be an
  // array of text parts, or null beside tool calls. `tools_json`: an array, or empty.
  // Errors: kInvalidArgument, says which message is wrong and how; kTemplateFailed, with what the
  // template says.
  [[nodiscard]] Result<std::string> render(std::string_view messages_json,
                                           std::string_view tools_json,
                                           bool add_generation_prompt) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::worker
