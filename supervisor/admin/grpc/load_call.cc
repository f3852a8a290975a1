#include <memory>
#include <optional>
#include <utility>

#include "supervisor/admin/convert_failure.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/load_operation.h"
#include "supervisor/rpc/deadline.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"
#include "supervisor/rpc/progress_messages.h"

namespace berth::admin {
namespace {

// A load as a stream of events.
class LoadCall : public rpc::EventWriter<v1::LoadEvent>, public LoadListener {
 public:
  LoadCall(grpc::CallbackServerContext& context, CallFrom from, bool wait)
      : EventWriter(context), from_(std::move(from)), wait_(wait) {}

  void run(ServerState& state, LoadAsk ask, const std::shared_ptr<LoadCall>& self) {
    const std::lock_guard lock(mutex_);
    if (!gone_) operation_ = LoadOperation::start(state, std::move(ask), self);
  }

  void on_load_lifted(const core::FailureRecord& record) override {
    v1::LoadEvent event;
    *event.mutable_lifted() = to_proto(record, from_.caller);
    push(std::move(event));
  }
  void on_load_progress(const residency::ClaimProgress& progress) override {
    v1::LoadEvent event;
    if (progress.queue_position) {
      *event.mutable_queued() = rpc::to_queued(*progress.queue_position, progress.eta);
    } else {
      *event.mutable_loading() =
          rpc::to_loading(progress.phase, progress.waits_for, progress.fraction, progress.eta);
    }
    push_latest(std::move(event), [](const v1::LoadEvent& newest) {
      return newest.has_loading() || newest.has_queued();
    });
  }
  void on_load_done(const std::optional<v1::Instance>& instance) override {
    v1::LoadEvent event;
    v1::Instance& to = wait_ ? *event.mutable_ready() : *event.mutable_started();
    if (instance) to = *instance;
    end_with(std::move(event), grpc::Status::OK);
  }
  void on_load_failed(const Error& error) override {
    const v1::ErrorDetail detail = from_.detail(error);
    v1::LoadEvent event;
    *event.mutable_error() = detail;
    fail_with(std::move(event), detail, rpc::to_status(error));
  }

 private:
  void on_gone() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (operation_) operation_->stop();
  }
  void on_over() override {
    const std::lock_guard lock(mutex_);
    operation_.reset();
  }

  const CallFrom from_;
  const bool wait_;
  std::mutex mutex_;  // the client may be gone before run() has stored the operation
  bool gone_ = false;
  std::shared_ptr<LoadOperation> operation_;
};

grpc::ServerWriteReactor<v1::LoadEvent>* start(grpc::CallbackServerContext& context,
                                               ServerState& state, CallFrom from,
                                               const v1::LoadModelRequest& request, bool retry) {
  LoadAsk ask{.model = request.model(),
              .retry = retry,
              .wait = !request.no_wait(),
              .deadline = rpc::deadline_of(context, 0, state.services.clock),
              .caller = from.caller};
  const auto call = std::make_shared<LoadCall>(context, from, ask.wait);
  call->begin(call);
  call->run(state, std::move(ask), call);
  return call.get();
}

}  // namespace

grpc::ServerWriteReactor<v1::LoadEvent>* start_load(grpc::CallbackServerContext& context,
                                                    ServerState& state, CallFrom from,
                                                    const v1::LoadModelRequest& request) {
  return start(context, state, std::move(from), request, /*retry=*/false);
}

grpc::ServerWriteReactor<v1::LoadEvent>* start_retry(grpc::CallbackServerContext& context,
                                                     ServerState& state, CallFrom from,
                                                     const v1::LoadModelRequest& request) {
  return start(context, state, std::move(from), request, /*retry=*/true);
}

}  // namespace berth::admin
