#include "worker/template/chat_template.h"

#include <exception>
#include <functional>
#include <minja/minja.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "common/text.h"
#include "worker/template/adapter.h"
#include "worker/template/bounded_output.h"
#include "worker/template/conversation.h"
#include "worker/template/frames.h"
#include "worker/template/jinja_functions.h"
#include "worker/template/mark_conversation.h"
#include "worker/template/template_guard.h"

namespace berth::worker {
namespace {

constexpr std::size_t kMessageBytes = 300;
constexpr std::size_t kMarkBytes = std::size_t{64} * kMaxControlTexts;

// minja adds the place within the text that guard_template() made, which nobody knows.
tl::unexpected<Error> template_failed(std::string_view what) {
  what = what.substr(0, what.find(" at row "));
  return fail(Reason::kTemplateFailed,
              "The model's chat template failed: " + printable_line(what, kMessageBytes));
}

tl::unexpected<Error> too_long() {
  return fail(Reason::kTemplateFailed,
              "The model's chat template made a prompt of more than 16 MiB.");
}

tl::unexpected<Error> too_many_parts() {
  return fail(
      Reason::kTemplateFailed,
      "The model's chat template repeated texts of control tokens that are in the messages: "
      "the prompt has more than " +
          std::to_string(FrameBounds::kItems) + " pieces. Send a prompt or tokens.");
}

Result<Marks> mark(Conversation& conversation, const ControlTexts& control) {
  return mark_control_texts(conversation, control);
}

// A macro holds the context that it stands in, which holds the macro: without this neither would
// ever be freed, nor the messages.
class ForgetAtEnd {
 public:
  explicit ForgetAtEnd(std::shared_ptr<minja::Context> context) : context_(std::move(context)) {}
  ForgetAtEnd(const ForgetAtEnd&) = delete;
  ForgetAtEnd& operator=(const ForgetAtEnd&) = delete;
  ~ForgetAtEnd() {
    for (const auto& key : context_->keys()) context_->set(key, minja::Value());
  }

 private:
  std::shared_ptr<minja::Context> context_;
};

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  std::string bos;
  std::string eos;
  std::shared_ptr<minja::TemplateNode> root;
  std::optional<Adapter> adapter;

  // Throws what minja throws.
  [[nodiscard]] Result<std::string> print(const Conversation& conversation, std::time_t now) const;
};

Result<std::string> ChatTemplate::Impl::print(const Conversation& conversation,
                                              std::time_t now) const {
  const auto context = minja::Context::make(minja::Value::object());
  const ForgetAtEnd forget(context);
  define_jinja_functions(*context, now);
  context->set("messages", minja::Value(conversation.messages));
  context->set("add_generation_prompt", minja::Value(conversation.add_generation_prompt));
  context->set("bos_token", minja::Value(bos));
  context->set("eos_token", minja::Value(eos));
  if (!conversation.tools.is_null()) context->set("tools", minja::Value(conversation.tools));
  for (const auto& [name, value] : conversation.variables.items()) {
    context->set(name, minja::Value(value));
  }
  BoundedOutput output(kMaxOutputBytes + kMarkBytes);
  std::ostringstream stream;
  static_cast<std::ostream&>(stream).rdbuf(&output);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  try {
    root->render(stream, context);
  } catch (...) {
    if (output.full()) return too_long();
    throw;
  }
  return output.take();
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(const std::string& source, const std::string& bos,
                                         const std::string& eos) {
  const auto guarded = guard_template(source);
  if (!guarded) return fail(guarded.error());
  try {
    auto impl = std::make_unique<Impl>();
    impl->source = source;
    impl->bos = bos;
    impl->eos = eos;
    impl->root = minja::Parser::parse(
        *guarded, {.trim_blocks = false, .lstrip_blocks = false, .keep_trailing_newline = true});
    impl->adapter.emplace(
        [self = impl.get()](const Json& messages, const Json& tools) -> std::optional<std::string> {
          Conversation trial{messages, tools, Json(), false};
          try {
            auto text = self->print(trial, 0);
            return text ? std::optional(std::move(*text)) : std::nullopt;
          } catch (const std::exception&) {
            return std::nullopt;
          }
        });
    return ChatTemplate(std::move(impl));
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  } catch (...) {
    return template_failed("unknown exception");
  }
}

Result<RenderedPrompt> ChatTemplate::render(const ChatRequest& request, const ControlTexts& control,
                                            std::time_t now) {
  try {
    auto conversation = read_conversation(request, impl_->source);
    if (!conversation) return fail(conversation.error());
    const auto marks = mark(*conversation, control);
    if (!marks) return fail(marks.error());
    impl_->adapter->adapt(*conversation);
    const auto text = impl_->print(*conversation, now);
    if (!text) return fail(text.error());
    if (marks->begin.empty() && text->size() > kMaxOutputBytes) return too_long();
    auto parts = control.split(*text, *marks);
    if (parts.size() > FrameBounds::kItems) return too_many_parts();
    return RenderedPrompt{std::move(parts), conversation->tools_described};
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  } catch (...) {
    return template_failed("unknown exception");
  }
}

Result<std::string> ChatTemplate::adapted(const ChatRequest& request) {
  try {
    auto conversation = read_conversation(request, impl_->source);
    if (!conversation) return fail(conversation.error());
    impl_->adapter->adapt(*conversation);
    Json whole = Json::object();
    whole["messages"] = std::move(conversation->messages);
    whole["tools"] = std::move(conversation->tools);
    whole["variables"] = std::move(conversation->variables);
    whole["add_generation_prompt"] = conversation->add_generation_prompt;
    return whole.dump();
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  }
}

Result<FlatConversation> flatten(const ChatRequest& request, const ControlTexts& control) {
  try {
    auto conversation = read_conversation(request, "");
    if (!conversation) return fail(conversation.error());
    auto marks = mark(*conversation, control);
    if (!marks) return fail(marks.error());
    // A template that shows the system's messages and no tools.
    Adapter adapter([](const Json& messages, const Json& /*tools*/) -> std::optional<std::string> {
      std::string text;
      for (const auto& one : messages) {
        if (one["content"].is_string()) text += one["content"].get<std::string>();
      }
      return text;
    });
    adapter.adapt(*conversation);
    FlatConversation flat;
    flat.marks = std::move(*marks);
    for (const auto& one : conversation->messages) {
      flat.messages.push_back({one["role"].get<std::string>(), one["content"].get<std::string>()});
    }
    return flat;
  } catch (const std::exception& problem) {
    return template_failed(problem.what());
  }
}

}  // namespace berth::worker
