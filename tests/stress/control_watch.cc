#include "tests/stress/control_watch.h"

#include "tests/stress/client.h"

namespace berth::stress {
namespace {

v1::ControlRequest hello() {
  v1::ControlRequest request;
  request.mutable_hello()->set_protocol(1);
  return request;
}

}  // namespace

ControlWatch::ControlWatch(const std::string& socket, std::chrono::milliseconds patience)
    : patience_(patience) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = v1::Worker::NewStub(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
  stream_ = stub_->Control(&context_);
  stream_->Write(hello());
}

ControlWatch::~ControlWatch() {
  context_.TryCancel();
  if (thread_.joinable()) thread_.join();
  stream_->Finish();
}

std::optional<v1::Ready> ControlWatch::wait_ready() {
  // A stream that is to stay has no deadline; it is given up, and with it the worker.
  Canceller canceller;
  canceller.cancel_after(context_, patience_);
  std::optional<v1::Ready> ready;
  v1::ControlEvent event;
  while (!ready && stream_->Read(&event)) {
    if (event.has_ready()) ready = event.ready();
    if (event.has_load_failed()) break;
  }
  canceller.forget(context_);
  return ready;
}

void ControlWatch::listen() {
  last_at_ = Clock::now();
  thread_ = std::thread([this] { run(); });
}

void ControlWatch::run() {
  v1::ControlEvent event;
  while (stream_->Read(&event)) {
    const std::lock_guard lock(mutex_);
    if (event.has_heartbeat()) {
      on_heartbeat(event.heartbeat());
    } else if (event.has_drained()) {
      drained_ = true;
    } else {
      problems_.push_back("the control stream says " + event.ShortDebugString());
    }
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void ControlWatch::on_heartbeat(const v1::Heartbeat& beat) {
  if (beat.progress() < last_.progress()) problems_.emplace_back("progress goes back");
  last_ = beat;
  last_at_ = Clock::now();
}

void ControlWatch::set_threads(std::uint32_t threads) {
  v1::ControlRequest request;
  request.mutable_set_threads()->set_threads(threads);
  stream_->Write(request);
}

std::vector<std::string> ControlWatch::try_second_stream() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience_);
  const auto stream = stub_->Control(&context);
  stream->Write(hello());
  v1::ControlEvent event;
  const bool said = stream->Read(&event);
  const auto status = stream->Finish();
  if (!said && status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) return {};
  return {"a second control stream: " + event.ShortDebugString() + " " + status.error_message()};
}

std::vector<std::string> ControlWatch::take_problems() {
  const std::lock_guard lock(mutex_);
  if (last_.active() > 0 && Clock::now() - last_at_ > patience_) {
    problems_.push_back("no heartbeat for too long after " + last_.ShortDebugString());
    last_at_ = Clock::now();
  }
  return std::exchange(problems_, {});
}

bool ControlWatch::wait_quiet() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience_,
                           [this] { return last_.active() == 0 && last_.waiting() == 0; });
}

bool ControlWatch::drain() {
  v1::ControlRequest request;
  request.mutable_drain();
  stream_->Write(request);
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience_, [this] { return drained_ || ended_; }) && drained_;
}

}  // namespace berth::stress
