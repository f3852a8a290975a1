#include "supervisor/rpc/command_generate.h"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "supervisor/rpc/command_events.h"

namespace berth::rpc {
namespace {

constexpr std::size_t kLongestWhole = 16UL << 20U;  // an answer that is no stream
constexpr std::size_t kLongestError = 64UL << 10U;  // of what a refusal says
constexpr unsigned int kFirstSuccess = 200;
constexpr unsigned int kEndOfSuccess = 300;

class GenerateReader : public CommandReader {
 public:
  GenerateReader(Clock& clock, ForwardRequest request, std::shared_ptr<GenerateSink> sink)
      : clock_(clock), request_(std::move(request)), sink_(std::move(sink)) {}

  CommandPost request(const std::string& model) override {
    sent_ = clock_.now();
    return {std::move(request_.path),
            {std::move(request_.body.front()), model, std::move(request_.body.back())}};
  }

  Status on_head(CommandHead head) override {
    status_ = head.status;
    retry_after_ = std::move(head.retry_after);
    stream_ = head.content_type.starts_with("text/event-stream");
    return {};
  }

  Result<bool> on_piece(std::string piece) override {
    if (!succeeded()) {
      whole_.append(piece, 0, kLongestError - std::min(kLongestError, whole_.size()));
      return true;
    }
    if (!stream_) {
      if (whole_.size() + piece.size() > kLongestWhole) {
        return fail(Reason::kInternal, "The model's program sent an answer of more than 16 MiB.");
      }
      whole_ += piece;
      return true;
    }
    if (const Status fed = events_.feed(piece); !fed) return fail(fed.error());
    collect();
    return deliver();
  }

  Result<bool> resume() override { return deliver(); }

  [[nodiscard]] bool complete() const override { return stream_ && events_.complete(); }

  [[nodiscard]] bool ends_slowly() const override { return whole_.size() >= kLargeAnswer; }
  void on_end(Status status) override { sink_->on_end(ended(std::move(status))); }

 private:
  [[nodiscard]] bool succeeded() const {
    return status_ >= kFirstSuccess && status_ < kEndOfSuccess;
  }

  void collect() {
    std::vector<core::TokenEvent> tokens = events_.take();
    if (!tokens.empty() && !first_) first_ = clock_.now();
    for (core::TokenEvent& token : tokens) waiting_.push_back(std::move(token));
  }

  // What came while there was no room is bounded by one piece.
  bool deliver() {
    while (!waiting_.empty()) {
      core::TokenEvent token = std::move(waiting_.front());
      waiting_.pop_front();
      if (!sink_->on_event(std::move(token))) return false;
    }
    return true;
  }

  Status ended(Status status) {
    if (!status && !(status_ != 0 && !succeeded())) return status;
    // What it refused with says more than how its connection ended.
    if (!succeeded()) return fail(command_error(status_, whole_, retry_after_));
    if (!stream_) {
      if (const Status read = events_.feed_whole(whole_); !read) return read;
      collect();
      // The client's queue takes one answer beyond its room.
      deliver_all();
    } else if (!events_.complete() && !events_.finish_reason()) {
      return fail(Reason::kWorkerDied, "The answer of the model's program ended unfinished.");
    }
    sink_->on_event(done());
    return {};
  }

  void deliver_all() {
    while (!waiting_.empty()) deliver();
  }

  core::DoneEvent done() {
    core::DoneEvent done;
    done.finish_reason = events_.finish_reason().value_or("stop");
    done.usage = events_.usage();
    const SteadyTime now = clock_.now();
    const SteadyTime first = first_.value_or(now);
    done.timings.first_token_us = whole_microseconds(first - sent_);
    done.timings.prefill_us = done.timings.first_token_us;
    done.timings.decode_us = whole_microseconds(now - first);
    return done;
  }

  Clock& clock_;
  ForwardRequest request_;
  const std::shared_ptr<GenerateSink> sink_;
  SteadyTime sent_{};
  std::optional<SteadyTime> first_;  // piece of the answer
  unsigned int status_ = 0;          // 0: none yet
  std::string retry_after_;
  bool stream_ = false;
  std::string whole_;  // of what is no stream
  CommandEvents events_;
  std::deque<core::TokenEvent> waiting_;  // for room
};

}  // namespace

std::unique_ptr<CommandReader> generate_reader(Clock& clock, ForwardRequest request,
                                               std::shared_ptr<GenerateSink> sink) {
  return std::make_unique<GenerateReader>(clock, std::move(request), std::move(sink));
}

}  // namespace berth::rpc
