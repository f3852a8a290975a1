#include "supervisor/gateway/openai/forwarded_answer.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <string_view>
#include <utility>

#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/openai/json_body.h"
#include "supervisor/gateway/openai/text_answer.h"

namespace berth::gateway::openai {
namespace {

constexpr int kLeastError = 400;
constexpr std::size_t kLongestError = 64UL << 10U;

Error too_long() {
  return {Reason::kInternal,
          "The model's program gave an answer of more than 64 MiB that is no stream."};
}

}  // namespace

std::string error_event_of(const std::string& body) {
  if (body.size() > kLongestError) return {};
  constexpr std::string_view kData = "data:";
  std::string_view text = body;
  if (text.starts_with(kData)) {
    text.remove_prefix(kData.size());
    text = text.substr(0, text.find_first_of("\r\n"));
  }
  const Result<boost::json::object> parsed = parse_body(text);
  if (!parsed || !parsed->contains("error")) return {};
  return "data: " + boost::json::serialize(*parsed) + "\n\n";
}

ForwardedAnswer::ForwardedAnswer(Clock& clock, Exchange exchange, bool streams)
    : clock_(clock), exchange_(std::move(exchange)) {
  if (!streams) return;
  stream_ = std::make_shared<EventStream>(clock_, exchange_.reply);
  stream_->watch();
}

void ForwardedAnswer::run(std::function<void()> resume, std::function<void()> cancel,
                          std::function<void(Error)> abort) {
  const std::lock_guard lock(mutex_);
  resume_ = std::move(resume);
  cancel_ = std::move(cancel);
  abort_ = std::move(abort);
}

void ForwardedAnswer::on_waiting(const residency::ClaimProgress& progress) {
  if (stream_) stream_->show(state_text(progress));
}

void ForwardedAnswer::on_head(ForwardedHead head) {
  if (head.event_stream && !stream_) {
    const std::lock_guard lock(mutex_);
    stream_ = std::make_shared<EventStream>(clock_, exchange_.reply);
  }
  if (stream_) stream_->show("prefill");
  head_ = std::move(head);
}

bool ForwardedAnswer::on_piece(std::string piece) {
  if (over_) return true;
  if (head_ && head_->event_stream) return stream_->write(std::move(piece));
  kept_ += piece;
  if (kept_.size() <= kMaxWholeAnswer) return true;
  kept_ = {};
  fail(too_long());
  abort(too_long());
  return true;
}

void ForwardedAnswer::on_finished() {
  if (!over_ && head_) {
    if (head_->event_stream) {
      stream_->end("");
    } else {
      send_kept();
    }
  }
  let_go();
}

void ForwardedAnswer::send_kept() {
  if (!stream_ || stream_->give_up()) {
    HttpResponse response;
    response.status = head_->status;
    response.content_type = std::move(head_->content_type);
    if (!head_->retry_after.empty()) {
      response.headers.push_back({"Retry-After", std::move(head_->retry_after)});
    }
    response.body = std::move(kept_);
    exchange_.reply->send(std::move(response));
    return;
  }
  // The client's stream has begun, so that only an event can tell.
  std::string event = head_->status >= kLeastError ? error_event_of(kept_) : std::string();
  if (!event.empty()) return stream_->end(std::move(event));
  fail(Error(Reason::kInternal, "The model's program answered with status " +
                                    std::to_string(head_->status) +
                                    " and no stream where one was asked for."));
}

void ForwardedAnswer::on_failed(const Error& error) {
  if (!over_) fail(error);
  let_go();
}

void ForwardedAnswer::fail(const Error& error) {
  over_ = true;
  if (stream_) return stream_->fail(error, exchange_.id, exchange_.caller);
  exchange_.reply->send(error_response(error, exchange_.id, exchange_.caller));
}

void ForwardedAnswer::on_room() {
  std::shared_ptr<EventStream> stream;
  std::function<void()> resume;
  {
    const std::lock_guard lock(mutex_);
    stream = stream_;
    resume = resume_;
  }
  if (stream) stream->on_room();
  if (resume) resume();
}

void ForwardedAnswer::on_gone() {
  std::shared_ptr<EventStream> stream;
  {
    const std::lock_guard lock(mutex_);
    stream = stream_;
  }
  if (stream) stream->on_gone();
  cancel();
}

void ForwardedAnswer::cancel() {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    cancel = std::move(cancel_);
    cancel_ = nullptr;
  }
  if (cancel) cancel();
  let_go();
}

void ForwardedAnswer::abort(Error why) {
  std::function<void(Error)> abort;
  {
    const std::lock_guard lock(mutex_);
    abort = std::move(abort_);
    abort_ = nullptr;
  }
  if (abort) abort(std::move(why));
}

void ForwardedAnswer::let_go() {
  std::function<void()> resume;
  std::function<void()> cancel;
  std::function<void(Error)> abort;
  const std::lock_guard lock(mutex_);
  resume.swap(resume_);
  cancel.swap(cancel_);
  abort.swap(abort_);
}

std::shared_ptr<Handler> start_forwarded_answer(const residency::Services& services,
                                                Exchange exchange, ForwardedRequest request,
                                                bool streams) {
  request.id = exchange.id;
  const core::Caller caller = exchange.caller;
  auto answer = std::make_shared<ForwardedAnswer>(services.clock, std::move(exchange), streams);
  const std::shared_ptr<Forwarding> forwarding = Forwarding::start(
      services, caller, std::move(request), services.clock.now() + kLongestRequest, answer);
  answer->run([forwarding] { forwarding->resume(); }, [forwarding] { forwarding->cancel(); },
              [forwarding](Error why) { forwarding->abort(std::move(why)); });
  return answer;
}

}  // namespace berth::gateway::openai
