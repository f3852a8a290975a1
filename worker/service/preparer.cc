#include "worker/service/preparer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "common/text.h"
#include "worker/service/request_check.h"

namespace berth::worker {
namespace {

// Deadlines further off than this are none.
constexpr std::uint64_t kMaxDeadlineMs = std::uint64_t{1000} * 60 * 60 * 24 * 365;

std::optional<SteadyTime> deadline_of(const GenerateStream& stream) {
  const auto& request = stream.request();
  if (!request.has_deadline_ms()) return std::nullopt;
  return stream.arrived() +
         std::chrono::milliseconds(std::min(request.deadline_ms(), kMaxDeadlineMs));
}

}  // namespace

Preparer::Preparer(LaneRunner& runner, std::string template_override)
    : runner_(runner), template_source_(std::move(template_override)) {}

Preparer::~Preparer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (chats_thread_) ::pthread_join(*chats_thread_, nullptr);
  if (others_thread_.joinable()) others_thread_.join();
  if (deadlines_thread_.joinable()) deadlines_thread_.join();
}

void Preparer::start(const Engine& engine) {
  engine_ = &engine;
  if (template_source_.empty()) template_source_ = engine.facts().chat_template;
  start_chats();
  others_thread_ = std::thread([this] { run_line(others_); });
  ::pthread_setname_np(others_thread_.native_handle(), "prepare");
  deadlines_thread_ = std::thread([this] { run_deadlines(); });
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

std::uint32_t Preparer::longest_token_bytes() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return longest_token_bytes_.has_value(); });
  return *longest_token_bytes_;
}

void Preparer::prepare(const std::shared_ptr<GenerateStream>& stream) {
  std::optional<Error> refused;
  {
    const std::lock_guard lock(mutex_);
    auto& line = stream->request().has_chat() ? chats_ : others_;
    if (stopped_) {
      refused = shutting_down();
    } else if (line.queue.size() >= kQueueLimit) {
      refused = Error(Reason::kQueueFull, "Too many requests wait for this model (" +
                                              std::to_string(kQueueLimit) + "); ask again later.");
    } else {
      line.queue.push_back(Waiting{stream, deadline_of(*stream)});
    }
  }
  if (refused) {
    stream->on_end(std::move(*refused));
  } else {
    changed_.notify_all();
  }
}

void Preparer::sweep() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    const auto now = steady_now();
    sweep_line(chats_, now, ended);
    sweep_line(others_, now, ended);
  }
  tell(ended);
}

void Preparer::sweep_line(Line& line, SteadyTime now, Ended& ended) {
  const auto ends = [&](const Waiting& waiting) {
    auto end = reason_to_end(*waiting.stream, waiting.deadline, now);
    if (end) ended.emplace_back(waiting.stream, std::move(*end));
    return end.has_value();
  };
  if (line.current && ends(*line.current)) line.current.reset();
  auto& queue = line.queue;
  queue.erase(std::remove_if(queue.begin(), queue.end(), ends), queue.end());
}

void Preparer::stop() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (auto* const line : {&chats_, &others_}) {
      if (line->current) ended.emplace_back(line->current->stream, shutting_down());
      line->current.reset();
      for (const auto& waiting : line->queue) ended.emplace_back(waiting.stream, shutting_down());
      line->queue.clear();
    }
  }
  tell(ended);
}

void Preparer::tell(Ended& ended) {
  for (auto& [stream, end] : ended) stream->on_end(std::move(end));
}

std::optional<SteadyTime> Preparer::next_deadline() const {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const Waiting& waiting) {
    if (waiting.deadline && (!next || *waiting.deadline < *next)) next = waiting.deadline;
  };
  for (const auto* const line : {&chats_, &others_}) {
    if (line->current) consider(*line->current);
    for (const auto& waiting : line->queue) consider(waiting);
  }
  return next;
}

void Preparer::run_deadlines() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (ending_) return;
      if (const auto next = next_deadline()) {
        changed_.wait_for(lock, *next - steady_now());
      } else {
        changed_.wait(lock);
      }
    }
    sweep();
  }
}

void Preparer::run_chats() {
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
  run_line(chats_);
}

void Preparer::run_line(Line& line) {
  while (true) {
    Waiting waiting;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ending_ || !line.queue.empty(); });
      if (ending_) return;
      waiting = std::move(line.queue.front());
      line.queue.pop_front();
    }
    handle(line, waiting);
  }
}

void Preparer::handle(Line& line, const Waiting& waiting) {
  const auto& stream = waiting.stream;
  // Ours until it is the line's current; then others may end it, and gRPC's request with it.
  const v1::GenerateRequest request = stream->request();
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    stopped = stopped_;
    if (!stopped) line.current = waiting;
  }
  if (stopped) {
    stream->on_end(shutting_down());
    return;
  }
  sweep();  // of what happened to it meanwhile
  if (waiting.deadline) changed_.notify_all();
  auto job = make_job(request);
  {
    const std::lock_guard lock(mutex_);
    if (!line.current) return;  // it has ended
    line.current.reset();
  }
  if (!job) {
    stream->on_end(job.error());
    return;
  }
  (*job)->sink = stream;
  (*job)->arrived = stream->arrived();
  (*job)->deadline = waiting.deadline;
  if (auto submitted = runner_.submit(std::move(*job)); !submitted) {
    stream->on_end(submitted.error());
  }
}

Result<std::unique_ptr<Job>> Preparer::make_job(const v1::GenerateRequest& request) {
  auto checked_request = check_request(request, engine_->facts());
  if (!checked_request) return fail(checked_request.error());
  auto& job = checked_request->job;
  auto tokens = tokens_of(request);
  if (!tokens) return fail(tokens.error());
  if (auto checked = check_window(tokens->size(), engine_->facts().window); !checked) {
    return fail(checked.error());
  }
  job->prompt = std::move(*tokens);
  auto sampler = engine_->make_sampler(checked_request->sampling);
  if (!sampler) return fail(sampler.error());
  job->sampler = std::move(*sampler);
  return std::move(job);
}

Result<std::vector<TokenId>> Preparer::tokens_of(const v1::GenerateRequest& request) {
  switch (request.input_case()) {
    case v1::GenerateRequest::kPrompt:
      if (auto checked = check_utf8(request.prompt(), "prompt"); !checked) {
        return fail(checked.error());
      }
      return engine_->tokenize(request.prompt(), true);
    case v1::GenerateRequest::kTokens:
      return check_tokens(request.tokens().ids(), engine_->facts().vocabulary, "tokens.ids");
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
