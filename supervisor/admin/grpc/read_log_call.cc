#include <memory>
#include <string>
#include <utility>

#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/log_reader.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

// A log as a stream of chunks.
class ReadLogCall : public rpc::EventWriter<v1::LogChunk>, public LogListener {
 public:
  ReadLogCall(grpc::CallbackServerContext& context, CallFrom from)
      : EventWriter(context), from_(std::move(from)) {}

  void run(ServerState& state, LogAsk ask, const std::shared_ptr<ReadLogCall>& self) {
    const std::lock_guard lock(mutex_);
    if (!gone_) reader_ = LogReader::start(state, std::move(ask), self);
  }

  bool on_log(std::string chunk) override {
    v1::LogChunk message;
    message.set_data(std::move(chunk));
    return push(std::move(message));
  }
  void on_log_end(Status status) override {
    if (status) return end(grpc::Status::OK);
    fail(from_.detail(status.error()), rpc::to_status(status.error()));
  }

 private:
  void on_room() override {
    const std::lock_guard lock(mutex_);
    if (reader_) reader_->resume();
  }
  void on_gone() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (reader_) reader_->stop();
  }
  void on_over() override {
    const std::lock_guard lock(mutex_);
    reader_.reset();
  }

  const CallFrom from_;
  std::mutex mutex_;  // the client may be gone before run() has stored the reader
  bool gone_ = false;
  std::shared_ptr<LogReader> reader_;
};

}  // namespace

grpc::ServerWriteReactor<v1::LogChunk>* start_read_log(grpc::CallbackServerContext& context,
                                                       ServerState& state, CallFrom from,
                                                       const v1::ReadLogRequest& request) {
  LogAsk ask;
  ask.model = request.model();
  if (request.has_tail_lines()) ask.lines = request.tail_lines();
  ask.follow = request.follow();
  ask.caller = from.caller;
  const auto call = std::make_shared<ReadLogCall>(context, from);
  call->begin(call);
  call->run(state, std::move(ask), call);
  return call.get();
}

}  // namespace berth::admin
