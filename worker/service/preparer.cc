#include "worker/service/preparer.h"

#include <utility>

#include "common/text.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

// Texts up to this size are tokenized in any case, a fraction of a second, so that whoever is
// refused hears the exact number (T93).
constexpr std::size_t kCountedBytes = std::size_t{1} << 20U;

}  // namespace

Preparer::Preparer(LaneRunner& runner, TemplateChoice choice)
    : runner_(runner), choice_(std::move(choice)) {}

Preparer::~Preparer() {
  lines_.end_threads();
  if (chats_thread_.joinable()) chats_thread_.join();
  if (others_thread_.joinable()) others_thread_.join();
  if (deadlines_thread_.joinable()) deadlines_thread_.join();
}

void Preparer::start(const Engine& engine) {
  engine_ = &engine;
  if (choice_.source.empty()) choice_.source = engine.facts().chat_template;
  // Each names itself: to name another thread is to write to /proc, which the sandbox forbids.
  const auto name = [](const char* text) { ::pthread_setname_np(::pthread_self(), text); };
  chats_thread_ = std::thread([this, name] {
    name("template");
    run_chats();
  });
  others_thread_ = std::thread([this, name] {
    name("prepare");
    lines_.run(CallLines::Line::kOthers, *this);
  });
  deadlines_thread_ = std::thread([this, name] {
    name("deadlines");
    lines_.run_deadlines();
  });
}

TokenBytes Preparer::measure() {
  const auto bytes = engine_->token_bytes();
  {
    const std::lock_guard lock(mutex_);
    token_bytes_ = bytes;
  }
  measured_.notify_all();
  return bytes;
}

TokenBytes Preparer::token_bytes() {
  {
    std::unique_lock lock(mutex_);
    if (measured_.wait_for(lock, kMeasureBound, [this] { return token_bytes_.has_value(); })) {
      return *token_bytes_;
    }
  }
  return measure();
}

std::uint32_t Preparer::longest_token_bytes() {
  return token_bytes().longest;
}

Status Preparer::check_length(std::string_view text) {
  if (text.size() <= kCountedBytes) return {};
  return check_text_length(text, token_bytes().bound, engine_->facts().window);
}

Status Preparer::check_length(const std::vector<PromptPart>& parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.text.size();
  if (bytes <= kCountedBytes) return {};  // spares the copy
  std::string text;
  text.reserve(bytes);
  for (const auto& part : parts) text += part.text;
  return check_length(text);
}

void Preparer::run_chats() {
  measure();
  if (has_template()) {
    const auto& facts = engine_->facts();
    renderer_.emplace(TemplateRenderer::Setup{
        choice_.program,
        {choice_.source, facts.bos_text, facts.eos_text, engine_->control_texts()},
        choice_.named,
        choice_.builtin,
        {}});
    renderer_->warm_up();
  }
  lines_.run(CallLines::Line::kChats, *this);
}

Result<RenderedPrompt> Preparer::render(const v1::ChatInput& chat, bool with_tools) {
  if (!renderer_) {
    return fail(Reason::kNotChat,
                "This model has no chat template. Send a prompt, or set the model's chat_template: "
                "a file with a Jinja template.");
  }
  ChatRequest request;
  request.messages_json = chat.messages_json();
  if (with_tools) request.tools_json = chat.tools_json();
  request.variables_json = chat.template_variables_json();
  request.add_generation_prompt = !chat.has_add_generation_prompt() || chat.add_generation_prompt();
  auto prompt =
      renderer_->render(request, [this] { return lines_.abandoned(CallLines::Line::kChats); });
  if (!prompt) return prompt;
  for (const auto& part : prompt->parts) {
    if (first_invalid_utf8(part.text)) {
      return fail(Reason::kTemplateFailed, "The model's chat template made invalid UTF-8.");
    }
  }
  return prompt;
}

}  // namespace berth::worker
