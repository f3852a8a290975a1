#include "supervisor/gateway/openai/event_stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "supervisor/gateway/http/error_response.h"
#include "supervisor/gateway/http/stream_head.h"

namespace berth::gateway::openai {
namespace {

std::string percent(double fraction) {
  const double bounded = std::clamp(std::isfinite(fraction) ? fraction : 0.0, 0.0, 1.0);
  return std::to_string(static_cast<int>(bounded * 100)) + " %";
}

}  // namespace

std::string state_text(const residency::ClaimProgress& progress) {
  std::string text = "loading " + percent(progress.fraction);
  if (progress.queue_position) {
    text = "queued, position " + std::to_string(*progress.queue_position);
  } else if (progress.phase == "queued") {
    text = "waiting for memory";
  }
  if (progress.eta) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(*progress.eta).count();
    text += ", about " + std::to_string(seconds) + " s";
  }
  return text;
}

std::string state_text(const core::PrefillEvent& prefill) {
  return "prefill " +
         percent(prefill.total == 0 ? 0 : static_cast<double>(prefill.done) / prefill.total);
}

EventStream::EventStream(Clock& clock, std::shared_ptr<Reply> reply)
    : clock_(clock), reply_(std::move(reply)), arrived_(clock.now()), state_("waiting") {}

EventStream::~EventStream() {
  if (!timer_.armed()) return;
  // A callback has to be copyable.
  clock_.post([timer = std::make_shared<Timer>(std::move(timer_))] { timer->reset(); });
}

void EventStream::watch() {
  arm(arrived_ + kCommitAfter);
}

void EventStream::arm(SteadyTime when) {
  timer_ = clock_.sleep_until(when, [weak = weak_from_this()] {
    if (const std::shared_ptr<EventStream> self = weak.lock()) self->tick();
  });
}

void EventStream::tick() {
  const SteadyTime now = clock_.now();
  Duration pause = kShowEvery;
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    speak(now);
    if (has_data_) pause = kKeepAliveCheck;
  }
  arm(now + pause);
}

void EventStream::speak(SteadyTime now) {
  const bool news = !committed_ || (!has_data_ && state_ != shown_);
  if (!news && now - last_put_ < kKeepAlive) return;
  commit();
  // A client that does not read needs no sign of life, and gets no pile of them.
  if (!room_ || !line_ended_) return;
  comment(has_data_ ? "keep-alive" : state_);
  if (!has_data_) shown_ = state_;
}

void EventStream::show(std::string state) {
  const std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

void EventStream::commit() {
  if (std::exchange(committed_, true)) return;
  reply_->begin(stream_head("text/event-stream; charset=utf-8"));
}

void EventStream::put(std::string piece) {
  if (piece.empty()) return;
  line_ended_ = piece.back() == '\n';
  last_put_ = clock_.now();
  if (!reply_->write(std::move(piece))) room_ = false;
}

void EventStream::comment(const std::string& text) {
  put(": " + text + "\n\n");
}

bool EventStream::write(std::string data) {
  const std::lock_guard lock(mutex_);
  if (over_) return true;
  commit();
  if (!data.empty()) has_data_ = true;
  put(std::move(data));
  return room_;
}

void EventStream::end(std::string data) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(over_, true)) return;
  commit();
  put(std::move(data));
  reply_->end();
}

void EventStream::fail(const Error& error, const std::string& request_id,
                       const core::Caller& caller) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(over_, true)) return;
  if (!committed_) {
    reply_->send(error_response(error, request_id, caller));
    return;
  }
  const std::string event = "data: " + error_body(error, request_id, caller) + "\n\n";
  put(line_ended_ ? event : "\n\n" + event);
  reply_->end();
}

bool EventStream::give_up() {
  const std::lock_guard lock(mutex_);
  if (committed_) return false;
  over_ = true;
  return true;
}

void EventStream::on_room() {
  const std::lock_guard lock(mutex_);
  room_ = true;
}

void EventStream::on_gone() {
  const std::lock_guard lock(mutex_);
  over_ = true;
}

bool EventStream::has_room() const {
  const std::lock_guard lock(mutex_);
  return room_;
}

}  // namespace berth::gateway::openai
