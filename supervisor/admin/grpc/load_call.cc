#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/grpc/convert.h"
#include "supervisor/admin/grpc/convert_failure.h"
#include "supervisor/rpc/deadline.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"
#include "supervisor/rpc/progress_messages.h"

namespace berth::admin {
namespace {

// A claim that wants the model ready and then lets it go. All but the writer's part runs on the
// core strand.
class LoadCall : public rpc::EventWriter<v1::LoadEvent>, public residency::ClaimObserver {
 public:
  enum class Kind : std::uint8_t { kLoad, kRetry };

  LoadCall(grpc::CallbackServerContext& context, ServerState& state, CallFrom from,
           v1::LoadModelRequest request, SteadyTime deadline, Kind kind)
      : EventWriter(context),
        state_(state),
        request_(std::move(request)),
        deadline_(deadline),
        kind_(kind),
        from_(std::move(from)) {}

  void run(std::shared_ptr<LoadCall> self) {
    state_.services.clock.post([self = std::move(self)] { self->start(self); });
  }

  void on_claim_progress(const residency::ClaimProgress& progress) override {
    if (request_.no_wait()) {
      // Before that it may still be refused, or wait for something that drops it with its claim.
      if (load_runs(progress)) {
        end_with_state(/*ready=*/false);
        drop();
      }
      return;
    }
    v1::LoadEvent event;
    if (progress.queue_position) {
      *event.mutable_queued() = rpc::to_queued(*progress.queue_position, progress.eta);
    } else {
      *event.mutable_loading() = rpc::to_loading(progress.phase, progress.fraction, progress.eta);
    }
    push_latest(std::move(event), [](const v1::LoadEvent& newest) {
      return newest.has_loading() || newest.has_queued();
    });
  }
  void on_lease(residency::Lease lease) override {
    end_with_state(/*ready=*/true);
    lease = {};
    drop();
  }
  void on_claim_failed(Error error) override {
    end_badly(error);
    drop();
  }

 private:
  void start(const std::shared_ptr<LoadCall>& self) {
    const auto model = state_.services.catalog()->find(request_.model());
    if (!model) return end_badly(model.error());
    model_ = (*model)->name;
    const std::string before = state_.services.residency.state_of(model_);
    if (before == "ready" || before == "busy") return end_with_state(/*ready=*/true);
    if (gone_) return;
    // One that has a problem is refused, and then nothing is tried that could say more.
    if (kind_ == Kind::kRetry && (*model)->problem.empty()) lift();
    self_ = self;
    claim_ = state_.services.residency.acquire(*model, residency::RequestClass::kOperator,
                                               deadline_, *this);
  }

  void lift() {
    const auto lifted = state_.services.residency.retry(model_, "berth retry");
    if (!lifted) return;
    v1::LoadEvent event;
    *event.mutable_lifted() = to_proto(*lifted, from_.audience());
    push(std::move(event));
  }

  // A process of this load exists, so that the load goes on without a claim (L5).
  static bool load_runs(const residency::ClaimProgress& progress) {
    return !progress.queue_position && progress.phase != "stopping" && progress.phase != "back_off";
  }

  void end_with_state(bool ready) {
    v1::LoadEvent event;
    v1::Instance& to =
        ready && !request_.no_wait() ? *event.mutable_ready() : *event.mutable_started();
    if (auto instance = snapshot()) to = *std::move(instance);
    end_with(std::move(event), grpc::Status::OK);
  }

  void end_badly(const Error& error) {
    const v1::ErrorDetail detail = from_.detail(error);
    v1::LoadEvent event;
    *event.mutable_error() = detail;
    fail_with(std::move(event), detail, rpc::to_status(error));
  }

  // The model's live instance; nothing where it has not got as far.
  std::optional<v1::Instance> snapshot() {
    for (const auto& instance : state_.services.residency.instances()) {
      if (instance.model == model_ && instance.state != "gone" && instance.state != "stuck") {
        return to_proto(instance, from_.audience());
      }
    }
    return std::nullopt;
  }

  // Lets go of the claim: the load itself goes on (L5).
  void drop() {
    const std::shared_ptr<LoadCall> keep = std::move(self_);
    claim_.reset();
  }

  void on_gone() override {
    state_.services.clock.post([self = std::static_pointer_cast<LoadCall>(shared_from_this())] {
      self->gone_ = true;
      self->drop();
    });
  }

  ServerState& state_;
  const v1::LoadModelRequest request_;
  const SteadyTime deadline_;
  const Kind kind_;
  const CallFrom from_;
  std::string model_;
  std::unique_ptr<residency::Claim> claim_;
  bool gone_ = false;
  std::shared_ptr<LoadCall> self_;  // while there is a claim
};

grpc::ServerWriteReactor<v1::LoadEvent>* start(grpc::CallbackServerContext& context,
                                               ServerState& state, CallFrom from,
                                               const v1::LoadModelRequest& request,
                                               LoadCall::Kind kind) {
  const auto call =
      std::make_shared<LoadCall>(context, state, std::move(from), request,
                                 rpc::deadline_of(context, 0, state.services.clock), kind);
  call->begin(call);
  call->run(call);
  return call.get();
}

}  // namespace

grpc::ServerWriteReactor<v1::LoadEvent>* start_load(grpc::CallbackServerContext& context,
                                                    ServerState& state, CallFrom from,
                                                    const v1::LoadModelRequest& request) {
  return start(context, state, std::move(from), request, LoadCall::Kind::kLoad);
}

grpc::ServerWriteReactor<v1::LoadEvent>* start_retry(grpc::CallbackServerContext& context,
                                                     ServerState& state, CallFrom from,
                                                     const v1::LoadModelRequest& request) {
  return start(context, state, std::move(from), request, LoadCall::Kind::kRetry);
}

}  // namespace berth::admin
