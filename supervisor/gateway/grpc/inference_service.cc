#include "supervisor/gateway/grpc/inference_service.h"

#include <memory>
#include <mutex>
#include <utility>

#include "supervisor/gateway/embedding.h"
#include "supervisor/gateway/generation.h"
#include "supervisor/gateway/grpc/convert.h"
#include "supervisor/gateway/grpc/unary_call.h"
#include "supervisor/gateway/tokenizing.h"
#include "supervisor/rpc/deadline.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::gateway {
namespace {

constexpr const char* kDoor = "grpc";

// One Generate call: the responder of its generation.
class GenerateCall : public rpc::EventWriter<v1::GenerateEvent>, public Responder {
 public:
  GenerateCall(grpc::CallbackServerContext& context, std::shared_ptr<const rpc::CallAccess> access,
               core::Caller caller, std::string request_id)
      : EventWriter(context),
        access_(std::move(access)),
        caller_(std::move(caller)),
        request_id_(std::move(request_id)) {}

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
    const v1::ErrorDetail detail = rpc::detail_for(*access_, caller_, error, request_id_);
    v1::GenerateEvent event;
    *event.mutable_error() = detail;
    Error told = error;
    told.message = detail.message();
    fail_with(std::move(event), detail, rpc::to_status(told));
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

  // The generation may still fail when the service is gone.
  const std::shared_ptr<const rpc::CallAccess> access_;
  const core::Caller caller_;
  const std::string request_id_;
  // The generation may have ended, and the client be gone, before run() has stored it.
  std::mutex generation_mutex_;
  std::shared_ptr<Generation> generation_;
  bool gone_ = false;
  bool over_ = false;
};

}  // namespace

InferenceService::InferenceService(residency::Services services, rpc::CallAccess access)
    : services_(std::move(services)),
      access_(std::make_shared<const rpc::CallAccess>(std::move(access))) {}

Result<core::Caller> InferenceService::caller_of(const grpc::CallbackServerContext& context) const {
  Result<core::Caller> caller = access_->caller_of(context);
  if (caller) caller->door = kDoor;
  return caller;
}

void InferenceService::note_refused(const std::string& id, const Result<core::Caller>& caller,
                                    const std::string& model, const Error& error) const {
  residency::RequestArrival arrival;
  arrival.id = id;
  if (caller) arrival.tenant = caller->tenant;
  arrival.protocol = kDoor;
  services_.requests.refused(std::move(arrival), model, error);
}

grpc::ServerWriteReactor<v1::GenerateEvent>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  const Result<core::Caller> caller = caller_of(*context);
  const Status admitted = rpc::admit(*access_, *context, caller);
  Result<core::GenerateRequest> parsed =
      admitted ? from_proto(*request) : Result<core::GenerateRequest>(fail(admitted.error()));
  std::string id = parsed ? parsed->request_id : std::string();
  if (id.empty()) id = services_.ids.next().to_string();

  const auto call =
      std::make_shared<GenerateCall>(*context, access_, caller.value_or(core::Caller()), id);
  call->begin(call);
  if (!parsed) {
    note_refused(id, caller, request->model(), parsed.error());
    call->on_failed(parsed.error());
    return call.get();
  }
  parsed->request_id = id;
  const SteadyTime deadline = rpc::deadline_of(
      *context, request->has_deadline_ms() ? request->deadline_ms() : 0, services_.clock);
  call->run(Generation::start(services_, *caller, *std::move(parsed), deadline, call));
  return call.get();
}

template <typename Kind, typename Message, typename Response>
grpc::ServerUnaryReactor* InferenceService::ask(grpc::CallbackServerContext& context,
                                                const Message& message, std::uint64_t asked_ms,
                                                Response& response) {
  using Request = typename Kind::Request;
  const Result<core::Caller> caller = caller_of(context);
  const Status admitted = rpc::admit(*access_, context, caller);
  Result<Request> parsed = admitted ? from_proto(message) : Result<Request>(fail(admitted.error()));
  std::string id = parsed ? parsed->request_id : std::string();
  if (id.empty()) id = services_.ids.next().to_string();

  using Call = UnaryCall<Kind, Response>;
  const typename Call::Put put = &put_answer;
  const auto call =
      std::make_shared<Call>(context, response, put, access_, caller.value_or(core::Caller()), id);
  call->begin(call);
  if (!parsed) {
    note_refused(id, caller, message.model(), parsed.error());
    call->on_failed(parsed.error());
    return call.get();
  }
  parsed->request_id = id;
  call->run(UnaryRequest<Kind>::start(services_, *caller, *std::move(parsed),
                                      rpc::deadline_of(context, asked_ms, services_.clock), call));
  return call.get();
}

grpc::ServerUnaryReactor* InferenceService::Embed(grpc::CallbackServerContext* context,
                                                  const v1::EmbedRequest* request,
                                                  v1::EmbedResponse* response) {
  return ask<EmbeddingKind>(*context, *request,
                            request->has_deadline_ms() ? request->deadline_ms() : 0, *response);
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(grpc::CallbackServerContext* context,
                                                     const v1::TokenizeRequest* request,
                                                     v1::TokenizeResponse* response) {
  return ask<TokenizingKind>(*context, *request, 0, *response);
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(grpc::CallbackServerContext* context,
                                                       const v1::DetokenizeRequest* request,
                                                       v1::DetokenizeResponse* response) {
  return ask<DetokenizingKind>(*context, *request, 0, *response);
}

grpc::ServerUnaryReactor* InferenceService::CountTokens(grpc::CallbackServerContext* context,
                                                        const v1::TokenizeRequest* request,
                                                        v1::CountTokensResponse* response) {
  return ask<TokenCountingKind>(*context, *request, 0, *response);
}

grpc::ServerUnaryReactor* InferenceService::ListModels(grpc::CallbackServerContext* context,
                                                       const v1::ListModelsRequest* /*request*/,
                                                       v1::ListModelsResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const Result<core::Caller> caller = caller_of(*context);
  if (const Status admitted = rpc::admit(*access_, *context, caller); !admitted) {
    const Error& error = admitted.error();
    const std::string id = services_.ids.next().to_string();
    note_refused(id, caller, {}, error);
    rpc::finish_badly(*context, *reactor,
                      rpc::detail_for(*access_, caller.value_or(core::Caller()), error, id), error);
    return reactor;
  }
  services_.clock.post([this, reactor, response, caller = *caller] {
    for (const auto& model : services_.catalog()->models()) {
      *response->add_models() = to_proto(*model, services_.residency.now_of(*model), caller);
    }
    put_failures(services_.residency.standing_failures(), caller, *response);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace berth::gateway
