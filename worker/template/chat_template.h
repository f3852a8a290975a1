#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "common/result.h"
#include "worker/template/chat_request.h"
#include "worker/template/control_texts.h"
#include "worker/template/flat_conversation.h"
#include "worker/template/rendered_prompt.h"

namespace berth::worker {

// A model's chat template (Jinja, by minja): messages in, the prompt's text out. Templates come
// from model files and messages from clients: neither is trusted, and no exception leaves this
// class. What it does not bound is the time and memory of a hostile template, nor how deep its
// macros call each other; that is why templates are rendered in a process of their own, with limits
// (TemplateProcess). A parsed template is used by one thread at a time. Calls need a large stack
// (kStackBytes).
class ChatTemplate {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{64} << 20U;
  static constexpr std::size_t kMaxOutputBytes = std::size_t{16} << 20U;

  // `bos` and `eos` are the texts of the model's tokens, empty where it has none.
  // Errors: kTemplateFailed with what the parser says, or which of TemplateBounds is passed.
  static Result<ChatTemplate> parse(const std::string& source, const std::string& bos,
                                    const std::string& eos);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt: one part, or several where texts of clients contain one of `control`. `now`: the
  // time that the template is told.
  // Errors: kInvalidArgument, says which message is wrong and how; kTemplateFailed, with what the
  // template says.
  Result<RenderedPrompt> render(const ChatRequest& request, const ControlTexts& control,
                                std::time_t now);

  // The request as the template gets it, as JSON: an object with messages, tools, variables and
  // add_generation_prompt. For tests, which give it to another renderer.
  Result<std::string> adapted(const ChatRequest& request);

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The messages of a request as texts, and the marks in them; tools are described in the system
// message. For a template of libllama's. Errors: kInvalidArgument.
Result<FlatConversation> flatten(const ChatRequest& request, const ControlTexts& control);

}  // namespace berth::worker
