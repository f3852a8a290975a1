#include "supervisor/gateway/grpc/inference_service.h"

#include <chrono>
#include <memory>
#include <utility>

#include "supervisor/gateway/generation.h"
#include "supervisor/gateway/grpc/convert.h"
#include "supervisor/rpc/deadline.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::gateway {
namespace {

// One Generate call: the responder of its generation.
class GenerateCall : public rpc::EventWriter<v1::GenerateEvent>, public Responder {
 public:
  GenerateCall(grpc::CallbackServerContext& context, std::string request_id)
      : EventWriter(context), request_id_(std::move(request_id)) {}

  void run(std::shared_ptr<Generation> generation) {
    const std::lock_guard lock(generation_mutex_);
    if (gone_) generation->cancel();
    if (!over_) generation_ = std::move(generation);
  }

  void on_accepted(const std::string& model) override {
    v1::GenerateEvent event;
    event.mutable_accepted()->set_request_id(request_id_);
    event.mutable_accepted()->set_model(model);
    push(std::move(event));
  }
  void on_waiting(const residency::ClaimProgress& progress) override {
    push_latest(to_event(progress), [](const v1::GenerateEvent& newest) {
      return newest.has_loading() || newest.has_queued();
    });
  }
  bool on_prefill(const core::PrefillEvent& prefill) override {
    return push_latest(to_event(prefill),
                       [](const v1::GenerateEvent& newest) { return newest.has_prefill(); });
  }
  bool on_token(core::TokenEvent token) override { return push(to_event(std::move(token))); }
  void on_finished(const Finished& finished) override {
    end_with(to_event(finished), grpc::Status::OK);
  }
  void on_failed(const Error& error) override {
    // Who reaches this socket is an admin until there are roles.
    const v1::ErrorDetail detail = rpc::to_proto(error, request_id_, rpc::Audience::kAdmin);
    v1::GenerateEvent event;
    *event.mutable_error() = detail;
    fail_with(std::move(event), detail, rpc::to_status(error));
  }

 private:
  void on_room() override {
    if (const std::shared_ptr<Generation> running = generation()) running->resume();
  }
  void on_gone() override {
    const std::lock_guard lock(generation_mutex_);
    gone_ = true;
    if (generation_) generation_->cancel();
  }
  void on_over() override {
    const std::lock_guard lock(generation_mutex_);
    over_ = true;
    generation_.reset();
  }
  std::shared_ptr<Generation> generation() {
    const std::lock_guard lock(generation_mutex_);
    return generation_;
  }

  const std::string request_id_;
  // The generation may have ended, and the client be gone, before run() has stored it.
  std::mutex generation_mutex_;
  std::shared_ptr<Generation> generation_;
  bool gone_ = false;
  bool over_ = false;
};

// Who reaches the socket is an admin until callers are told apart.
core::Caller local_caller() {
  return {core::Role::kAdmin, true, "local"};
}

}  // namespace

InferenceService::InferenceService(residency::Services services) : services_(std::move(services)) {}

grpc::ServerWriteReactor<v1::GenerateEvent>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  Result<core::GenerateRequest> parsed = from_proto(*request);
  std::string id = parsed ? parsed->request_id : std::string();
  if (id.empty()) id = services_.ids.next().to_string();

  const auto call = std::make_shared<GenerateCall>(*context, id);
  call->begin(call);
  if (!parsed) {
    services_.events.emit_typed(
        events::RequestRefused{.request = id,
                               .reason = std::string(reason_info(parsed.error().reason).name),
                               .message = parsed.error().message});
    call->on_failed(parsed.error());
    return call.get();
  }
  parsed->request_id = id;
  const SteadyTime deadline = rpc::deadline_of(
      *context, request->has_deadline_ms() ? request->deadline_ms() : 0, services_.clock);
  call->run(Generation::start(services_, local_caller(), *std::move(parsed), deadline, call));
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::ListModels(grpc::CallbackServerContext* context,
                                                       const v1::ListModelsRequest* /*request*/,
                                                       v1::ListModelsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  services_.clock.post([this, reactor, response] {
    for (const auto& model : services_.catalog()->models()) {
      *response->add_models() =
          to_proto(*model, services_.residency.state_of(model->name), /*with_path=*/true);
    }
    put_failures(services_.residency.standing_failures(), *response);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace berth::gateway
