#include "tests/fault_worker/worker_side.h"

#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fault_worker/fault_deeds.h"

namespace berth::fault {
namespace {

constexpr std::uint32_t kProtocol = 1;
constexpr std::uint32_t kVocabulary = 256;
constexpr auto kHeartbeat = std::chrono::seconds(1);
constexpr auto kSettle = std::chrono::seconds(5);
constexpr auto kLook = std::chrono::milliseconds(5);
constexpr std::size_t kMostEvents = 4096;

grpc::Status not_ready() {
  return {grpc::StatusCode::FAILED_PRECONDITION, "The model is still being loaded."};
}

// Each token a word with its blank.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const auto blank = std::min(text.find(' ', begin), text.size() - 1);
    words.push_back(text.substr(begin, blank + 1 - begin));
    begin = blank + 1;
  }
  return words;
}

std::size_t prompt_bytes(const v1::GenerateRequest& request) {
  if (request.has_chat()) return request.chat().messages_json().size();
  if (request.has_tokens()) return static_cast<std::size_t>(request.tokens().ids_size());
  return request.prompt().size();
}

}  // namespace

// A generation on its thread.
class WorkerSide::Request final : public Answer {
 public:
  Request(WorkerSide& side, grpc::ServerContext& context,
          grpc::ServerWriter<v1::GenerateEvent>& writer, std::uint64_t most)
      : side_(side), context_(context), writer_(writer), most_(most) {}

  void say(std::uint64_t tokens) override {
    for (; tokens > 0 && said_ < most_ && alive(); --tokens) {
      v1::GenerateEvent event;
      event.mutable_token()->set_text(side_.token(said_));
      event.mutable_token()->add_ids(static_cast<int>(said_ % kVocabulary));
      ++said_;
      writer_.Write(event);
      {
        const std::lock_guard lock(side_.mutex_);
        if (!side_.frozen_) ++side_.counter_;
      }
      if (side_.token_every_ > Duration::zero()) sleep_for(side_.token_every_);
    }
  }
  void hold() override {
    while (alive()) sleep_for(kLook);
  }

  [[nodiscard]] bool alive() const { return !context_.IsCancelled(); }
  [[nodiscard]] std::uint64_t said() const { return said_; }

 private:
  WorkerSide& side_;
  grpc::ServerContext& context_;
  grpc::ServerWriter<v1::GenerateEvent>& writer_;
  const std::uint64_t most_;
  std::uint64_t said_ = 0;
};

WorkerSide::WorkerSide(worker::Options options, Actor& actor)
    : options_(std::move(options)), actor_(actor) {
  progress_.mutable_progress()->set_phase("starting");
  if (options_.engine.context > 0) window_ = options_.engine.context;
  if (options_.engine.sequences > 0) sequences_ = options_.engine.sequences;
}

WorkerSide::~WorkerSide() = default;

std::string WorkerSide::listen() {
  auto socket = worker::ListenSocket::open(options_.socket);
  if (!socket) return socket.error().message;
  socket_.emplace(std::move(*socket));
  if (options_.notify_fd >= 0) {
    write_all(options_.notify_fd, "listening\n");
    ::close(options_.notify_fd);
  }
  grpc::ServerBuilder builder;
  builder.RegisterService(static_cast<v1::Worker::Service*>(this));
  server_ = builder.BuildAndStart();
  std::thread([this] { accept_connections(); }).detach();
  std::thread([this] { beat_heart(); }).detach();
  return {};
}

void WorkerSide::accept_connections() {
  while (true) {
    pollfd fd{socket_->fd(), POLLIN, 0};
    ::poll(&fd, 1, -1);
    while (auto connection = socket_->accept()) {
      grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
    }
  }
}

void WorkerSide::beat_heart() {
  while (true) {
    sleep_for(kHeartbeat);
    const std::lock_guard lock(mutex_);
    if (active_ == 0 || !hearts_) continue;
    if (events_.size() < kMostEvents) events_.push_back(heartbeat_event());
    changed_.notify_all();
  }
}

// --- what the script orders

void WorkerSide::progress(const std::string& phase, float fraction) {
  v1::ControlEvent event;
  event.mutable_progress()->set_phase(phase);
  event.mutable_progress()->set_fraction(fraction);
  {
    const std::lock_guard lock(mutex_);
    progress_ = event;
  }
  tell(std::move(event));
}

void WorkerSide::ready() {
  v1::ControlEvent event;
  auto& ready = *event.mutable_ready();
  const bool embeds = options_.engine.purpose == worker::Purpose::kEmbed;
  ready.set_protocol(kProtocol);
  ready.set_build_id("fault-worker");
  ready.set_window(window_);
  ready.set_sequences(sequences_);
  ready.set_vocabulary(kVocabulary);
  ready.set_longest_token_bytes(64);
  ready.set_can_chat(!embeds);
  ready.set_can_generate(!embeds);
  ready.set_can_embed(embeds);
  ready.set_embedding_size(embeds ? 4 : 0);
  ready.set_threads(std::max<std::uint32_t>(options_.engine.threads, 1));
  auto& memory = *ready.add_memory();
  memory.set_domain("host");
  memory.set_weights_bytes(1UL << 20U);
  {
    const std::lock_guard lock(mutex_);
    verdict_ = event;
  }
  tell(std::move(event));
}

void WorkerSide::fail(const std::string& failure_class, const std::string& reason) {
  v1::ControlEvent event;
  event.mutable_load_failed()->set_class_(failure_class);
  event.mutable_load_failed()->set_reason(reason);
  {
    const std::lock_guard lock(mutex_);
    verdict_ = event;
  }
  tell(std::move(event));
}

void WorkerSide::settle_failure() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kSettle, [this] { return failure_sent_; });
}

void WorkerSide::close_control() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void WorkerSide::heartbeats(bool on) {
  const std::lock_guard lock(mutex_);
  hearts_ = on;
}

void WorkerSide::freeze(bool on) {
  const std::lock_guard lock(mutex_);
  frozen_ = on;
}

void WorkerSide::set(const Order& order) {
  const std::lock_guard lock(mutex_);
  if (order.name == "text") text_ = order.text;
  if (order.name == "tokens") tokens_ = order.number;
  if (order.name == "token-every") token_every_ = order.time;
  if (order.name == "window") window_ = static_cast<std::uint32_t>(order.number);
  if (order.name == "sequences") sequences_ = static_cast<std::uint32_t>(order.number);
}

void WorkerSide::end() {
  if (socket_) socket_->remove_name();
}

// --- the control stream

void WorkerSide::tell(v1::ControlEvent event) {
  const std::lock_guard lock(mutex_);
  if (!connected_ || events_.size() >= kMostEvents) return;  // a new stream is told the latest
  events_.push_back(std::move(event));
  changed_.notify_all();
}

grpc::Status WorkerSide::Control(grpc::ServerContext* context, ControlStream* stream) {
  v1::ControlRequest hello;
  if (!stream->Read(&hello) || !hello.has_hello() || hello.hello().protocol() != kProtocol ||
      (!options_.instance.empty() && hello.hello().instance_id() != options_.instance)) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "This is not the greeting for this worker."};
  }
  {
    const std::lock_guard lock(mutex_);
    if (connected_ || closed_) {
      return {grpc::StatusCode::FAILED_PRECONDITION, "There is a control stream already."};
    }
    connected_ = true;
    events_ = {progress_};
    if (verdict_) events_.push_back(*verdict_);
  }
  bool ended = false;
  std::thread reader([&] {
    v1::ControlRequest request;
    while (stream->Read(&request)) on_control_request(request);
    const std::lock_guard lock(mutex_);
    ended = true;
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ended || closed_ || !events_.empty(); });
    if (ended || closed_) break;
    const v1::ControlEvent event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    stream->Write(event);
    lock.lock();
    failure_sent_ = failure_sent_ || event.has_load_failed();
    changed_.notify_all();
  }
  connected_ = false;
  lock.unlock();
  context->TryCancel();  // ends the reader too
  reader.join();
  return grpc::Status::OK;
}

void WorkerSide::on_control_request(const v1::ControlRequest& request) {
  if (request.has_cancel_load() && !is_ready()) {
    end();
    ::_exit(0);
  }
  if (!request.has_drain()) return;
  const std::lock_guard lock(mutex_);
  drain_ = true;
  if (active_ > 0) return;
  events_.emplace_back().mutable_drained();
  changed_.notify_all();
}

v1::ControlEvent WorkerSide::heartbeat_event() const {
  v1::ControlEvent event;
  event.mutable_heartbeat()->set_progress(counter_);
  event.mutable_heartbeat()->set_active(active_);
  return event;
}

void WorkerSide::count_active(int change) {
  const std::lock_guard lock(mutex_);
  active_ = static_cast<std::uint32_t>(static_cast<int>(active_) + change);
  if (!frozen_) ++counter_;
  if (!connected_ || events_.size() >= kMostEvents) return;
  if (hearts_) events_.push_back(heartbeat_event());
  if (drain_ && active_ == 0) events_.emplace_back().mutable_drained();
  changed_.notify_all();
}

bool WorkerSide::is_ready() const {
  const std::lock_guard lock(mutex_);
  return verdict_ && verdict_->has_ready();
}

// --- requests

std::string WorkerSide::token(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto words = words_of(text_);
  return words.at(number % words.size());
}

grpc::Status WorkerSide::Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                  grpc::ServerWriter<v1::GenerateEvent>* writer) {
  if (!is_ready()) return not_ready();
  count_active(1);
  std::uint64_t whole = 0;
  {
    const std::lock_guard lock(mutex_);
    whole = tokens_ > 0 ? tokens_ : words_of(text_).size();
  }
  const auto most =
      request->has_max_tokens() ? std::min<std::uint64_t>(whole, request->max_tokens()) : whole;
  const auto prompt = static_cast<std::uint32_t>(prompt_bytes(*request));
  v1::GenerateEvent event;
  event.mutable_prefill()->set_done(prompt);
  event.mutable_prefill()->set_total(prompt);
  writer->Write(event);

  Request answer(*this, *context, *writer, most);
  actor_.request(*this, answer);
  answer.say(most - answer.said());
  if (answer.alive()) {
    auto& done = *event.mutable_done();
    done.set_finish_reason(most < whole ? "length" : "stop");
    done.set_instance_id(options_.instance);
    done.mutable_usage()->set_prompt_tokens(prompt);
    done.mutable_usage()->set_completion_tokens(static_cast<std::uint32_t>(answer.said()));
    writer->Write(event);
  }
  count_active(-1);
  return answer.alive() ? grpc::Status::OK : grpc::Status::CANCELLED;
}

grpc::Status WorkerSide::Embed(grpc::ServerContext* /*context*/, const v1::EmbedRequest* request,
                               v1::EmbedResponse* response) {
  if (!is_ready()) return not_ready();
  for (const auto& input : request->inputs()) {
    auto& embedding = *response->add_embeddings();
    for (const float value : {1.0F, 0.0F, 0.0F, 0.0F}) embedding.add_values(value);
    embedding.set_tokens(static_cast<std::uint32_t>(input.text().size()));
    response->set_prompt_tokens(response->prompt_tokens() + embedding.tokens());
  }
  return grpc::Status::OK;
}

grpc::Status WorkerSide::Tokenize(grpc::ServerContext* /*context*/,
                                  const v1::TokenizeRequest* request,
                                  v1::TokenizeResponse* response) {
  if (!is_ready()) return not_ready();
  for (const char byte : request->text()) {
    response->add_ids(static_cast<unsigned char>(byte));
    response->add_texts(std::string(1, byte));
  }
  return grpc::Status::OK;
}

grpc::Status WorkerSide::CountTokens(grpc::ServerContext* /*context*/,
                                     const v1::TokenizeRequest* request,
                                     v1::CountTokensResponse* response) {
  if (!is_ready()) return not_ready();
  const auto& text = request->has_chat() ? request->chat().messages_json() : request->text();
  response->set_tokens(static_cast<std::uint32_t>(text.size()));
  response->set_window(window_);
  return grpc::Status::OK;
}

}  // namespace berth::fault
