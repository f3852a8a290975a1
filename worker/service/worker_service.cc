#include "worker/service/worker_service.h"

#include <utility>

#include "worker/service/control_stream.h"
#include "worker/service/embed_work.h"
#include "worker/service/generate_stream.h"
#include "worker/service/vocabulary_work.h"

namespace berth::worker {

grpc::ServerBidiReactor<v1::ControlRequest, v1::ControlEvent>* WorkerService::Control(
    grpc::CallbackServerContext* /*context*/) {
  return ControlStream::create(hub_).get();
}

void WorkerService::on_change() {
  preparer_.sweep();
  runner_.wake();
}

template <typename Call>
void WorkerService::begin(const std::shared_ptr<Call>& call) {
  if (hub_.ready()) {
    preparer_.prepare(call);
  } else {
    call->on_end(Error(Reason::kConflict, "The model is still being loaded."));
  }
}

// The calls hold themselves until gRPC is done with them.

grpc::ServerWriteReactor<v1::GenerateEvent>* WorkerService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  ++open_calls_;
  const auto stream = GenerateStream::create(
      *context, *request, hub_.instance_id(), pauses_,
      {.on_change = [this] { on_change(); }, .on_done = [this] { --open_calls_; }});
  begin(stream);
  return stream.get();
}

grpc::ServerUnaryReactor* WorkerService::begin_unary(grpc::CallbackServerContext& context,
                                                     UnaryCall::Setup setup) {
  ++open_calls_;
  const auto call = UnaryCall::create(
      context, std::move(setup),
      {.on_change = [this] { on_change(); }, .on_done = [this] { --open_calls_; }});
  begin(call);
  return call.get();
}

grpc::ServerUnaryReactor* WorkerService::Embed(grpc::CallbackServerContext* context,
                                               const v1::EmbedRequest* request,
                                               v1::EmbedResponse* response) {
  UnaryCall::Setup setup;
  if (request->has_deadline_ms()) setup.deadline_ms = request->deadline_ms();
  setup.request_id = request->request_id();
  setup.make_work = [=](const auto& call) {
    return std::make_unique<EmbedWork>(call, *request, *response);
  };
  return begin_unary(*context, std::move(setup));
}

grpc::ServerUnaryReactor* WorkerService::Tokenize(grpc::CallbackServerContext* context,
                                                  const v1::TokenizeRequest* request,
                                                  v1::TokenizeResponse* response) {
  UnaryCall::Setup setup;
  setup.needs_template = request->has_chat();
  setup.make_work = [=](const auto& call) { return tokenize_work(call, *request, *response); };
  return begin_unary(*context, std::move(setup));
}

grpc::ServerUnaryReactor* WorkerService::CountTokens(grpc::CallbackServerContext* context,
                                                     const v1::TokenizeRequest* request,
                                                     v1::CountTokensResponse* response) {
  UnaryCall::Setup setup;
  setup.needs_template = request->has_chat();
  setup.make_work = [=](const auto& call) { return count_work(call, *request, *response); };
  return begin_unary(*context, std::move(setup));
}

grpc::ServerUnaryReactor* WorkerService::Detokenize(grpc::CallbackServerContext* context,
                                                    const v1::DetokenizeRequest* request,
                                                    v1::DetokenizeResponse* response) {
  UnaryCall::Setup setup;
  setup.make_work = [=](const auto& call) { return detokenize_work(call, *request, *response); };
  return begin_unary(*context, std::move(setup));
}

}  // namespace berth::worker
