#include "supervisor/gateway/openai/text_answer.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "supervisor/gateway/generation.h"
#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/openai/answer_writer.h"
#include "supervisor/gateway/openai/event_stream.h"

namespace berth::gateway::openai {
namespace {

// The generation of one answer, from both of its sides. Kept alive by the generation until its last
// call, and by the server until the answer is complete.
class TextAnswer : public Handler, public Responder {
 public:
  TextAnswer(AnswerKind kind, Exchange exchange, AnswerHead head)
      : exchange_(std::move(exchange)), kind_(kind), head_(std::move(head)) {}

  void run(std::shared_ptr<Generation> generation) {
    const std::lock_guard lock(mutex_);
    generation_ = std::move(generation);
  }

  void on_accepted(const std::string& model) override {
    head_.model = model;
    writer_ = kind_ == AnswerKind::kChat ? make_chat_writer(head_) : make_completion_writer(head_);
  }
  void on_gone() override {
    if (const std::shared_ptr<Generation> running = let_go()) running->cancel();
  }

 protected:
  [[nodiscard]] const Exchange& exchange() const { return exchange_; }
  [[nodiscard]] AnswerWriter& writer() const { return *writer_; }

  void resume() {
    if (const std::shared_ptr<Generation> running = generation()) running->resume();
  }
  void abort(Error why) {
    if (const std::shared_ptr<Generation> running = generation()) running->abort(std::move(why));
  }
  // The generation refers to this, too.
  std::shared_ptr<Generation> let_go() {
    const std::lock_guard lock(mutex_);
    return std::move(generation_);
  }

 private:
  std::shared_ptr<Generation> generation() {
    const std::lock_guard lock(mutex_);
    return generation_;
  }

  const Exchange exchange_;
  const AnswerKind kind_;
  AnswerHead head_;
  std::unique_ptr<AnswerWriter> writer_;  // from on_accepted() on

  std::mutex mutex_;
  std::shared_ptr<Generation> generation_;
};

class StreamedAnswer : public TextAnswer {
 public:
  StreamedAnswer(Clock& clock, AnswerKind kind, Exchange exchange, AnswerHead head)
      : TextAnswer(kind, std::move(exchange), std::move(head)),
        stream_(std::make_shared<EventStream>(clock, this->exchange().reply)) {}

  void watch() { stream_->watch(); }

  void on_waiting(const residency::ClaimProgress& progress) override {
    stream_->show(state_text(progress));
  }
  bool on_prefill(const core::PrefillEvent& prefill) override {
    stream_->show(state_text(prefill));
    return stream_->has_room();
  }
  bool on_token(core::TokenEvent token) override {
    std::string pieces;
    writer().write(token, pieces);
    // Tokens without a text of their own are no reason to commit.
    return pieces.empty() ? stream_->has_room() : stream_->write(std::move(pieces));
  }
  void on_finished(const Finished& finished) override {
    std::string pieces;
    writer().write_end(finished, pieces);
    stream_->end(std::move(pieces));
    let_go();
  }
  void on_failed(const Error& error) override {
    stream_->fail(with_openai_names(error), exchange().id, exchange().caller);
    let_go();
  }
  void on_room() override {
    stream_->on_room();
    resume();
  }
  void on_gone() override {
    stream_->on_gone();
    TextAnswer::on_gone();
  }

 private:
  const std::shared_ptr<EventStream> stream_;
};

// Its status waits until it is complete (spec 6).
class WholeAnswer : public TextAnswer {
 public:
  using TextAnswer::TextAnswer;

  void on_waiting(const residency::ClaimProgress& /*progress*/) override {}
  bool on_prefill(const core::PrefillEvent& /*prefill*/) override { return true; }
  bool on_token(core::TokenEvent token) override {
    if (too_long_ || writer().collect(std::move(token)) <= kMaxWholeAnswer) return true;
    too_long_ = true;
    abort(too_long());
    return true;
  }
  void on_finished(const Finished& finished) override {
    if (too_long_) return on_failed(too_long());
    HttpResponse response;
    response.body = writer().whole(finished);
    exchange().reply->send(std::move(response));
    let_go();
  }
  void on_failed(const Error& error) override {
    exchange().reply->send(
        error_response(with_openai_names(error), exchange().id, exchange().caller));
    let_go();
  }

 private:
  static Error too_long() {
    ErrorExtras extras;
    extras.param = "stream";
    return {Reason::kInvalidArgument,
            "The answer has more than 64 MiB. Ask for it as a stream, or for fewer tokens.",
            std::move(extras)};
  }

  bool too_long_ = false;
};

}  // namespace

std::shared_ptr<Handler> start_text_answer(const residency::Services& services, AnswerKind kind,
                                           Exchange exchange, TextRequest request) {
  AnswerHead head;
  head.request_id = exchange.id;
  head.created = std::chrono::floor<std::chrono::seconds>(services.clock.wall_now())
                     .time_since_epoch()
                     .count();
  head.logprobs = request.generate.top_logprobs.has_value();
  head.include_usage = request.include_usage;
  head.parallel_tool_calls = request.parallel_tool_calls;
  request.generate.request_id = exchange.id;
  const core::Caller caller = exchange.caller;
  std::shared_ptr<TextAnswer> answer;
  if (request.stream) {
    const auto streamed = std::make_shared<StreamedAnswer>(services.clock, kind,
                                                           std::move(exchange), std::move(head));
    streamed->watch();
    answer = streamed;
  } else {
    answer = std::make_shared<WholeAnswer>(kind, std::move(exchange), std::move(head));
  }
  // Its first call comes by way of the core strand, where this runs: after run().
  answer->run(Generation::start(services, caller, std::move(request.generate),
                                services.clock.now() + kLongestRequest, answer));
  return answer;
}

}  // namespace berth::gateway::openai
