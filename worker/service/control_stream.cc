#include "worker/service/control_stream.h"

#include <string>
#include <utility>

namespace berth::worker {
namespace {

constexpr std::uint32_t kProtocol = 1;

}  // namespace

std::shared_ptr<ControlStream> ControlStream::create(ControlHub& hub) {
  std::shared_ptr<ControlStream> stream(new ControlStream(hub));
  stream->self_ = stream;
  if (!hub.attach(stream)) {
    const std::lock_guard lock(stream->mutex_);
    stream->finish(
        {grpc::StatusCode::FAILED_PRECONDITION, "This worker has a control stream already."});
    return stream;
  }
  stream->StartRead(&stream->request_);
  stream->poke();
  return stream;
}

void ControlStream::poke() {
  const std::lock_guard lock(mutex_);
  send_next();
}

void ControlStream::send_next() {
  if (writing_ || finished_) return;
  bool closing = false;
  if (auto event = hub_.next(closing)) {
    event_ = std::move(*event);
    writing_ = true;
    StartWrite(&event_);
  } else if (closing) {
    finish(grpc::Status::OK);
  }
}

void ControlStream::finish(const grpc::Status& status) {
  if (finished_) return;
  finished_ = true;
  Finish(status);
}

grpc::Status ControlStream::check_hello(const v1::Hello& hello) const {
  if (hello.protocol() != kProtocol) {
    return {grpc::StatusCode::FAILED_PRECONDITION,
            "The supervisor speaks protocol " + std::to_string(hello.protocol()) +
                ", this worker protocol " + std::to_string(kProtocol) +
                ". Both must be of one build."};
  }
  if (!hub_.instance_id().empty() && hello.instance_id() != hub_.instance_id()) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "The supervisor asks for instance " +
                                                       hello.instance_id() + ", this is " +
                                                       hub_.instance_id() + "."};
  }
  return grpc::Status::OK;
}

void ControlStream::OnReadDone(bool ok) {
  if (!ok) {  // the supervisor has closed its side, or is gone
    const std::lock_guard lock(mutex_);
    finish(grpc::Status::OK);
    return;
  }
  grpc::Status problem;
  switch (request_.request_case()) {
    case v1::ControlRequest::kHello:
      problem = check_hello(request_.hello());
      greeted_ = problem.ok();
      break;
    case v1::ControlRequest::kCancelLoad:
    case v1::ControlRequest::kDrain:
    case v1::ControlRequest::kSetThreads:
      if (!greeted_) {
        problem = {grpc::StatusCode::FAILED_PRECONDITION, "The first request must be Hello."};
      } else if (request_.has_drain()) {
        hub_.handlers().on_drain();
      } else if (request_.has_set_threads()) {
        hub_.handlers().on_set_threads(request_.set_threads().threads());
      } else {
        hub_.handlers().on_cancel_load();
      }
      break;
    case v1::ControlRequest::REQUEST_NOT_SET:
      break;  // of a newer supervisor
  }
  const std::lock_guard lock(mutex_);
  if (!problem.ok()) {
    finish(problem);
    return;
  }
  if (!finished_) StartRead(&request_);
}

void ControlStream::OnWriteDone(bool ok) {
  bool failure_sent = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    failure_sent = ok && event_.has_load_failed();
    if (ok) send_next();
  }
  if (failure_sent) hub_.handlers().on_failure_sent();
}

void ControlStream::OnCancel() {
  const std::lock_guard lock(mutex_);
  finish({grpc::StatusCode::CANCELLED, "The supervisor went away."});
}

void ControlStream::OnDone() {
  hub_.detach(this);
  const auto last = std::move(self_);
}

}  // namespace berth::worker
