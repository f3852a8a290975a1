#include "worker/service/preparer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/text.h"
#include "worker/service/request_check.h"

namespace berth::worker {

Preparer::Preparer(LaneRunner& runner, std::string template_override)
    : runner_(runner), template_source_(std::move(template_override)) {}

Preparer::~Preparer() {
  lines_.end_threads();
  if (chats_thread_) ::pthread_join(*chats_thread_, nullptr);
  if (others_thread_.joinable()) others_thread_.join();
  if (deadlines_thread_.joinable()) deadlines_thread_.join();
}

void Preparer::start(const Engine& engine) {
  engine_ = &engine;
  if (template_source_.empty()) template_source_ = engine.facts().chat_template;
  start_chats();
  others_thread_ = std::thread([this] { lines_.run(CallLines::Line::kOthers, *this); });
  ::pthread_setname_np(others_thread_.native_handle(), "prepare");
  deadlines_thread_ = std::thread([this] { lines_.run_deadlines(); });
  ::pthread_setname_np(deadlines_thread_.native_handle(), "deadlines");
}

// Throws as std::thread does.
void Preparer::start_chats() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, ChatTemplate::kStackBytes);
  pthread_t thread = 0;
  const auto run = [](void* self) -> void* {
    static_cast<Preparer*>(self)->run_chats();
    return nullptr;
  };
  const int problem = ::pthread_create(&thread, &attributes, run, this);
  ::pthread_attr_destroy(&attributes);
  if (problem != 0) throw std::system_error(problem, std::generic_category(), "pthread_create");
  chats_thread_ = thread;
  ::pthread_setname_np(thread, "template");
}

void Preparer::measure() {
  Measures measures;
  measures.longest_piece = engine_->longest_token_bytes();
  measures.longest_name = measures.longest_piece;
  for (const auto& text : engine_->control_texts()) {
    measures.longest_name =
        std::max(measures.longest_name, static_cast<std::uint32_t>(text.size()));
  }
  {
    const std::lock_guard lock(mutex_);
    measures_ = measures;
  }
  measured_.notify_all();
}

Preparer::Measures Preparer::measures() {
  std::unique_lock lock(mutex_);
  measured_.wait(lock, [this] { return measures_.has_value(); });
  return *measures_;
}

std::uint32_t Preparer::longest_token_bytes() {
  return measures().longest_piece;
}

Status Preparer::check_length(std::size_t text_bytes) {
  return check_text_length(text_bytes, measures().longest_name, engine_->facts().window);
}

void Preparer::run_chats() {
  measure();
  if (has_template()) {
    const auto& facts = engine_->facts();
    template_ = ChatTemplate::parse(template_source_, facts.bos_text, facts.eos_text);
  }
  lines_.run(CallLines::Line::kChats, *this);
}

Result<std::vector<PromptPart>> Preparer::render(const v1::ChatInput& chat, bool with_tools) {
  if (!template_) {
    return fail(Reason::kNotChat,
                "This model has no chat template. Send a prompt, or configure chat_template.");
  }
  if (!*template_) return fail(template_->error());
  const auto text = (*template_)
                        ->render(chat.messages_json(), with_tools ? chat.tools_json() : "",
                                 !chat.has_add_generation_prompt() || chat.add_generation_prompt());
  if (!text) return fail(text.error());
  if (first_invalid_utf8(*text)) {
    return fail(Reason::kTemplateFailed, "The model's chat template made invalid UTF-8.");
  }
  return std::vector<PromptPart>{PromptPart{*text, false}};
}

}  // namespace berth::worker
