#include "worker/service/generate_stream.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "common/durations.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/error_detail.h"
#include "worker/service/generate_work.h"

namespace berth::worker {

GenerateStream::GenerateStream(grpc::CallbackServerContext& context,
                               const v1::GenerateRequest& request, std::string instance_id,
                               Pauses& pauses, Handlers handlers)
    : context_(context),
      request_(request),
      instance_id_(std::move(instance_id)),
      pauses_(pauses),
      handlers_(std::move(handlers)),
      arrived_(steady_now()) {}

std::shared_ptr<GenerateStream> GenerateStream::create(grpc::CallbackServerContext& context,
                                                       const v1::GenerateRequest& request,
                                                       std::string instance_id, Pauses& pauses,
                                                       Handlers handlers) {
  std::shared_ptr<GenerateStream> stream(
      new GenerateStream(context, request, std::move(instance_id), pauses, std::move(handlers)));
  stream->self_ = stream;
  return stream;
}

void GenerateStream::on_prefill(std::uint32_t done, std::uint32_t total) {
  const std::lock_guard lock(mutex_);
  prefill_.set_done(done);
  prefill_.set_total(total);
  has_prefill_ = true;
  send_next();
}

std::optional<std::uint64_t> GenerateStream::deadline_ms() const {
  if (!request_.has_deadline_ms()) return std::nullopt;
  return request_.deadline_ms();
}

std::unique_ptr<CallWork> GenerateStream::take_work() {
  return std::make_unique<GenerateWork>(shared_from_this(), request_);
}

void GenerateStream::on_piece(v1::Token& piece) {
  const std::lock_guard lock(mutex_);
  called_tools_ = called_tools_ || piece.tool_calls_size() > 0;
  pending_.add(piece);
  send_next();
  update_room();
}

void GenerateStream::on_end(JobEnd end) {
  const std::lock_guard lock(mutex_);
  end_ = std::make_unique<JobEnd>(std::move(end));
  send_next();
  update_room();
}

bool GenerateStream::has_room() const {
  if (room_.load(std::memory_order_relaxed)) return true;
  pauses_.passed.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void GenerateStream::update_room() {
  room_.store(pending_.has_room(), std::memory_order_relaxed);
  const bool paused = !pending_.has_room() && end_ == nullptr && !cancelled_;
  if (paused == paused_) return;
  paused_ = paused;
  if (paused) {
    ++pauses_.streams;
  } else {
    --pauses_.streams;
  }
}

void GenerateStream::send_next() {
  if (writing_ || finished_) return;
  if (cancelled_) {
    if (end_ == nullptr) return;  // the job ends within one chunk
    finished_ = true;
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The caller went away."));
    return;
  }
  if (has_prefill_) {
    has_prefill_ = false;
    *wire_.mutable_prefill() = prefill_;
  } else if (pending_.due(end_ != nullptr)) {
    pending_.take(*wire_.mutable_token());
  } else if (end_ != nullptr) {
    send_end();
    return;
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&wire_);
}

void GenerateStream::send_end() {
  finished_ = true;
  if (const auto* const result = std::get_if<JobResult>(end_.get())) {
    *wire_.mutable_done() = to_done(*result);
    StartWriteAndFinish(&wire_, grpc::WriteOptions(), grpc::Status::OK);
  } else if (const auto* const error = std::get_if<Error>(end_.get())) {
    *wire_.mutable_error() = to_detail(*error, request_.request_id());
    context_.AddTrailingMetadata(kErrorTrailer, to_trailer(wire_.error()));
    StartWriteAndFinish(&wire_, grpc::WriteOptions(), to_status(*error));
  } else {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The caller went away."));
  }
}

v1::Done GenerateStream::to_done(const JobResult& result) const {
  v1::Done done;
  const bool stopped = result.finish == JobResult::Finish::kStop;
  done.set_finish_reason(!stopped ? "length" : called_tools_ ? "tool_calls" : "stop");
  done.set_stop_text(result.stop_text);
  auto& usage = *done.mutable_usage();
  usage.set_prompt_tokens(result.prompt_tokens);
  usage.set_completion_tokens(result.completion_tokens);
  usage.set_cached_tokens(result.cached_tokens);
  usage.set_drafted_tokens(result.drafted_tokens);
  usage.set_accepted_tokens(result.accepted_tokens);
  auto& timings = *done.mutable_timings();
  timings.set_queue_us(whole_microseconds(result.timings.queue));
  timings.set_prefill_us(whole_microseconds(result.timings.prefill));
  timings.set_decode_us(whole_microseconds(result.timings.decode));
  timings.set_first_token_us(whole_microseconds(result.timings.first_token));
  done.set_instance_id(instance_id_);
  done.set_model(request_.model());
  return done;
}

void GenerateStream::OnWriteDone(bool ok) {
  bool made_room = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    send_next();
    const bool had_room = room_.load(std::memory_order_relaxed);
    update_room();
    made_room = !ok || (!had_room && room_.load(std::memory_order_relaxed));
  }
  if (made_room) handlers_.on_change();
}

void GenerateStream::OnCancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    send_next();
    update_room();
  }
  handlers_.on_change();
}

void GenerateStream::OnDone() {
  // The job may still hold the stream, but has ended: nothing is called any more.
  const auto last = std::move(self_);
  handlers_.on_done();
}

}  // namespace berth::worker
