#include "worker/service/preparer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "common/text.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

// Deadlines further off than this are none.
constexpr std::uint64_t kMaxDeadlineMs = std::uint64_t{1000} * 60 * 60 * 24 * 365;

}  // namespace

Preparer::Preparer(LaneRunner& runner, std::string template_override)
    : runner_(runner), template_source_(std::move(template_override)) {}

Preparer::~Preparer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Preparer::start(const Engine& engine) {
  engine_ = &engine;
  if (template_source_.empty()) template_source_ = engine.facts().chat_template;
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "prepare");
}

std::uint32_t Preparer::longest_token_bytes() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return longest_token_bytes_.has_value(); });
  return *longest_token_bytes_;
}

void Preparer::prepare(std::shared_ptr<GenerateStream> stream) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < kQueueLimit) {
      queue_.push_back(std::move(stream));
    }
  }
  if (stream != nullptr) {
    stream->on_end(Error(Reason::kQueueFull, "Too many requests wait for this model (" +
                                                 std::to_string(kQueueLimit) +
                                                 "); ask again later."));
    return;
  }
  changed_.notify_all();
}

void Preparer::run() {
  const auto longest = engine_->longest_token_bytes();
  {
    const std::lock_guard lock(mutex_);
    longest_token_bytes_ = longest;
  }
  changed_.notify_all();
  if (has_template()) {
    const auto& facts = engine_->facts();
    template_ = ChatTemplate::parse(template_source_, facts.bos_text, facts.eos_text);
  }
  while (true) {
    std::shared_ptr<GenerateStream> stream;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      stream = std::move(queue_.front());
      queue_.pop_front();
    }
    handle(stream);
  }
}

void Preparer::handle(const std::shared_ptr<GenerateStream>& stream) {
  if (stream->cancelled()) {
    stream->on_end(JobCancelled{});
    return;
  }
  const auto& request = stream->request();
  auto job = make_job(request);
  if (!job) {
    stream->on_end(job.error());
    return;
  }
  (*job)->sink = stream;
  (*job)->arrived = stream->arrived();
  if (request.has_deadline_ms()) {
    (*job)->deadline = stream->arrived() +
                       std::chrono::milliseconds(std::min(request.deadline_ms(), kMaxDeadlineMs));
  }
  if (auto submitted = runner_.submit(std::move(*job)); !submitted) {
    stream->on_end(submitted.error());
  }
}

Result<std::unique_ptr<Job>> Preparer::make_job(const v1::GenerateRequest& request) {
  auto job = check_request(request);
  if (!job) return job;
  auto tokens = tokens_of(request);
  if (!tokens) return fail(tokens.error());
  if (auto checked = check_window(tokens->size(), engine_->facts().window); !checked) {
    return fail(checked.error());
  }
  (*job)->prompt = std::move(*tokens);
  return job;
}

Result<std::vector<TokenId>> Preparer::tokens_of(const v1::GenerateRequest& request) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kPrompt:
      if (auto checked = check_utf8(request.prompt(), "prompt"); !checked) {
        return fail(checked.error());
      }
      return engine_->tokenize(request.prompt(), true);
    case v1::GenerateRequest::kTokens:
      return check_tokens(request.tokens(), engine_->facts().vocabulary);
    case v1::GenerateRequest::kChat:
      return chat_tokens(request.chat());
    case v1::GenerateRequest::INPUT_NOT_SET:
      break;
  }
  ErrorExtras extras;
  extras.param = "input";
  return fail(Error(Reason::kInvalidArgument,
                    "The request has no input: one of chat, prompt and tokens must be set.",
                    std::move(extras)));
}

Result<std::vector<TokenId>> Preparer::chat_tokens(const v1::ChatInput& chat) {
  if (!template_) {
    return fail(Reason::kNotChat,
                "This model has no chat template. Send a prompt, or configure chat_template.");
  }
  if (!*template_) return fail(template_->error());
  const auto text = (*template_)
                        ->render(chat.messages_json(), chat.tools_json(),
                                 !chat.has_add_generation_prompt() || chat.add_generation_prompt());
  if (!text) return fail(text.error());
  if (first_invalid_utf8(*text)) {
    return fail(Reason::kTemplateFailed, "The model's chat template made invalid UTF-8.");
  }
  return engine_->tokenize(*text, true);
}

}  // namespace berth::worker
