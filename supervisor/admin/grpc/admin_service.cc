#include "supervisor/admin/grpc/admin_service.h"

#include <memory>
#include <string>
#include <utility>

#include "supervisor/admin/convert_failure.h"
#include "supervisor/admin/failures.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/load_operation.h"
#include "supervisor/admin/memory_plan.h"
#include "supervisor/admin/memory_state.h"
#include "supervisor/admin/state.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {
namespace {

// One call with one answer, as whoever works on it keeps it: the context and the answer outlive the
// reactor, which is done with Finish.
template <typename Message>
class Unary {
 public:
  Unary(grpc::CallbackServerContext& context, CallFrom from, Message& response)
      : context_(context),
        reactor_(*context.DefaultReactor()),
        from_(std::move(from)),
        response_(response) {}

  [[nodiscard]] const core::Caller& caller() const { return from_.caller; }
  [[nodiscard]] grpc::ServerUnaryReactor* reactor() const { return &reactor_; }

  void answer(Message message) const {
    response_ = std::move(message);
    reactor_.Finish(grpc::Status::OK);
  }
  void refuse(const Error& error) const {
    rpc::finish_badly(context_, reactor_, from_.detail(error), error);
  }
  void answer(Result<Message> message) const {
    if (!message) return refuse(message.error());
    answer(*std::move(message));
  }

 private:
  grpc::CallbackServerContext& context_;
  grpc::ServerUnaryReactor& reactor_;
  CallFrom from_;
  Message& response_;
};

}  // namespace

Result<CallFrom> AdminService::from(const grpc::CallbackServerContext& context,
                                    const std::string& admins_do, bool limited) const {
  Result<core::Caller> caller = access_->caller_of(context);
  if (!caller) return fail(caller.error());
  if (limited) {
    if (const Status may = rpc::admit(*access_, context, caller); !may) return fail(may.error());
  }
  if (!admins_do.empty()) {
    if (const Status may = rpc::admins_only(*caller, admins_do); !may) return fail(may.error());
  }
  return CallFrom{*std::move(caller), access_};
}

grpc::ServerUnaryReactor* AdminService::refuse(grpc::CallbackServerContext& context,
                                               const Error& error) const {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  rpc::finish_badly(context, *reactor, rpc::detail_for(*access_, {}, error, {}), error);
  return reactor;
}

template <typename Message>
grpc::ServerWriteReactor<Message>* AdminService::refuse_stream(grpc::CallbackServerContext& context,
                                                               const Error& error) const {
  const auto call = std::make_shared<rpc::EventWriter<Message>>(context);
  call->begin(call);
  call->fail(rpc::detail_for(*access_, {}, error, {}), rpc::to_status(error));
  return call.get();
}

grpc::ServerUnaryReactor* AdminService::GetServerInfo(grpc::CallbackServerContext* context,
                                                      const v1::GetServerInfoRequest* /*request*/,
                                                      v1::ServerInfo* response) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::ServerInfo> call(*context, *std::move(from_whom), *response);
  get_server_info(state_, call.caller(),
                  [call](v1::ServerInfo info) { call.answer(std::move(info)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::ListInstances(grpc::CallbackServerContext* context,
                                                      const v1::ListInstancesRequest* /*request*/,
                                                      v1::ListInstancesResponse* response) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::ListInstancesResponse> call(*context, *std::move(from_whom), *response);
  list_instances(state_, call.caller(),
                 [call](v1::ListInstancesResponse list) { call.answer(std::move(list)); });
  return call.reactor();
}

grpc::ServerWriteReactor<v1::LoadEvent>* AdminService::LoadModel(
    grpc::CallbackServerContext* context, const v1::LoadModelRequest* request) {
  Result<CallFrom> from_whom = from(*context, "load a model by hand");
  if (!from_whom) return refuse_stream<v1::LoadEvent>(*context, from_whom.error());
  return start_load(*context, state_, *std::move(from_whom), *request);
}

grpc::ServerWriteReactor<v1::LoadEvent>* AdminService::RetryModel(
    grpc::CallbackServerContext* context, const v1::LoadModelRequest* request) {
  Result<CallFrom> from_whom = from(*context, "lift a failure by hand");
  if (!from_whom) return refuse_stream<v1::LoadEvent>(*context, from_whom.error());
  return start_retry(*context, state_, *std::move(from_whom), *request);
}

grpc::ServerUnaryReactor* AdminService::ListFailures(grpc::CallbackServerContext* context,
                                                     const v1::ListFailuresRequest* request,
                                                     v1::ListFailuresResponse* response) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::ListFailuresResponse> call(*context, *std::move(from_whom), *response);
  FailureAsk ask;
  ask.model = request->model();
  ask.history = request->history();
  ask.limit = request->limit();
  ask.caller = call.caller();
  list_failures(state_, std::move(ask),
                [call](Result<v1::ListFailuresResponse> list) { call.answer(std::move(list)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::ExplainModel(grpc::CallbackServerContext* context,
                                                     const v1::ExplainModelRequest* request,
                                                     v1::ModelReport* response) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::ModelReport> call(*context, *std::move(from_whom), *response);
  explain_model(state_, request->model(), call.caller(),
                [call](Result<v1::ModelReport> report) { call.answer(std::move(report)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::UnloadModel(grpc::CallbackServerContext* context,
                                                    const v1::UnloadModelRequest* request,
                                                    v1::UnloadModelResponse* response) {
  Result<CallFrom> from_whom = from(*context, "unload a model by hand");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::UnloadModelResponse> call(*context, *std::move(from_whom), *response);
  unload_model(
      state_, request->model(), request->force(), call.caller(),
      [call](Result<v1::UnloadModelResponse> outcome) { call.answer(std::move(outcome)); });
  return call.reactor();
}

grpc::ServerWriteReactor<v1::LogChunk>* AdminService::ReadLog(grpc::CallbackServerContext* context,
                                                              const v1::ReadLogRequest* request) {
  Result<CallFrom> from_whom = from(*context, "read logs");
  if (!from_whom) return refuse_stream<v1::LogChunk>(*context, from_whom.error());
  return start_read_log(*context, state_, *std::move(from_whom), *request);
}

grpc::ServerWriteReactor<v1::Event>* AdminService::WatchEvents(
    grpc::CallbackServerContext* context, const v1::WatchEventsRequest* request) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse_stream<v1::Event>(*context, from_whom.error());
  return start_watch_events(*context, state_, *std::move(from_whom), *request);
}

grpc::ServerUnaryReactor* AdminService::GetConfig(grpc::CallbackServerContext* context,
                                                  const v1::GetConfigRequest* /*request*/,
                                                  v1::EffectiveConfig* response) {
  Result<CallFrom> from_whom = from(*context, "read the configuration");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::EffectiveConfig> call(*context, *std::move(from_whom), *response);
  state_.services.clock.post([this, call] {
    v1::EffectiveConfig config;
    for (const catalog::Setting& setting : state_.config->settings) {
      v1::Setting& to = *config.add_settings();
      to.set_key(setting.key);
      to.set_value(setting.value);
      to.set_source(setting.source);
    }
    call.answer(std::move(config));
  });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::GetState(grpc::CallbackServerContext* context,
                                                 const v1::GetStateRequest* /*request*/,
                                                 v1::State* response) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::State> call(*context, *std::move(from_whom), *response);
  get_state(state_, call.caller(), [call](v1::State state) { call.answer(std::move(state)); });
  return call.reactor();
}

grpc::ServerWriteReactor<v1::State>* AdminService::WatchState(
    grpc::CallbackServerContext* context, const v1::WatchStateRequest* request) {
  Result<CallFrom> from_whom = from(*context);
  if (!from_whom) return refuse_stream<v1::State>(*context, from_whom.error());
  return start_watch_state(*context, state_, *std::move(from_whom), *request);
}

grpc::ServerUnaryReactor* AdminService::PlanModel(grpc::CallbackServerContext* context,
                                                  const v1::PlanModelRequest* request,
                                                  v1::ModelPlan* response) {
  Result<CallFrom> from_whom = from(*context, "see the memory plan");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::ModelPlan> call(*context, *std::move(from_whom), *response);
  PlanAsk ask;
  ask.model = request->model();
  if (request->has_context()) ask.context = request->context();
  if (request->has_sequences()) ask.sequences = request->sequences();
  ask.caller = call.caller();
  plan_model(state_, std::move(ask),
             [call](Result<v1::ModelPlan> plan) { call.answer(std::move(plan)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::GetMemory(grpc::CallbackServerContext* context,
                                                  const v1::GetMemoryRequest* /*request*/,
                                                  v1::Memory* response) {
  Result<CallFrom> from_whom = from(*context, "see who has the memory");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::Memory> call(*context, *std::move(from_whom), *response);
  get_memory(state_, call.caller(),
             [call](Result<v1::Memory> memory) { call.answer(std::move(memory)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::PinModel(grpc::CallbackServerContext* context,
                                                 const v1::PinModelRequest* request,
                                                 v1::PinModelResponse* response) {
  Result<CallFrom> from_whom = from(*context, "pin a model");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::PinModelResponse> call(*context, *std::move(from_whom), *response);
  pin_model(state_, request->model(), call.caller(),
            [call](Result<v1::PinModelResponse> pinned) { call.answer(std::move(pinned)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::UnpinModel(grpc::CallbackServerContext* context,
                                                   const v1::UnpinModelRequest* request,
                                                   v1::UnpinModelResponse* response) {
  Result<CallFrom> from_whom = from(*context, "unpin a model");
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::UnpinModelResponse> call(*context, *std::move(from_whom), *response);
  unpin_model(
      state_, request->model(), call.caller(),
      [call](Result<v1::UnpinModelResponse> unpinned) { call.answer(std::move(unpinned)); });
  return call.reactor();
}

grpc::ServerUnaryReactor* AdminService::CancelRequest(grpc::CallbackServerContext* context,
                                                      const v1::CancelRequestRequest* request,
                                                      v1::CancelRequestResponse* response) {
  // The request may be the one that the key has to wait for.
  Result<CallFrom> from_whom = from(*context, {}, /*limited=*/false);
  if (!from_whom) return refuse(*context, from_whom.error());
  const Unary<v1::CancelRequestResponse> call(*context, *std::move(from_whom), *response);
  cancel_request(state_, request->request_id(), call.caller(), [call](const Status& done) {
    if (!done) return call.refuse(done.error());
    call.answer(v1::CancelRequestResponse());
  });
  return call.reactor();
}

}  // namespace berth::admin
