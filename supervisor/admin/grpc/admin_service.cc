#include "supervisor/admin/grpc/admin_service.h"

#include <unistd.h>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/durations.h"
#include "common/version.h"
#include "supervisor/admin/grpc/calls.h"
#include "supervisor/admin/grpc/convert.h"
#include "supervisor/admin/grpc/failure_calls.h"
#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::admin {

Result<CallFrom> AdminService::from(const grpc::CallbackServerContext& context,
                                    const std::string& admins_do) const {
  Result<core::Caller> caller = access_.caller_of(context);
  if (!caller) return fail(caller.error());
  if (!admins_do.empty()) {
    if (const Status may = rpc::admins_only(*caller, admins_do); !may) return fail(may.error());
  }
  return CallFrom{*std::move(caller), access_};
}

grpc::ServerUnaryReactor* AdminService::refuse(grpc::CallbackServerContext& context,
                                               const Error& error) const {
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  rpc::finish_badly(context, *reactor, rpc::detail_for(access_, {}, error, {}), error);
  return reactor;
}

template <typename Message>
grpc::ServerWriteReactor<Message>* AdminService::refuse_stream(grpc::CallbackServerContext& context,
                                                               const Error& error) const {
  const auto call = std::make_shared<rpc::EventWriter<Message>>(context);
  call->begin(call);
  call->fail(rpc::detail_for(access_, {}, error, {}), rpc::to_status(error));
  return call.get();
}

grpc::ServerUnaryReactor* AdminService::GetServerInfo(grpc::CallbackServerContext* context,
                                                      const v1::GetServerInfoRequest* /*request*/,
                                                      v1::ServerInfo* response) {
  const Result<CallFrom> caller = from(*context);
  if (!caller) return refuse(*context, caller.error());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  state_.services.clock.post([this, reactor, response, admin = caller->caller.admin()] {
    response->set_version(std::string(kVersion));
    response->set_build_id(std::string(kBuildId));
    response->set_pid(getpid());
    response->set_started_unix_ms(state_.started.time_since_epoch().count());
    response->set_state(state_.state());
    response->set_http(state_.http);
    if (admin) {
      for (const std::string& address : state_.grpc) response->add_grpc(address);
      response->set_config_file(state_.config->file);
      response->set_state_dir(state_.config->server.state_dir);
      response->set_log_dir(state_.config->server.log_dir);
      // These name files and settings.
      for (std::string& problem : state_.degraded()) *response->add_degraded() = std::move(problem);
    }
    response->set_models(static_cast<std::uint32_t>(state_.services.catalog()->models().size()));
    response->set_instances(
        static_cast<std::uint32_t>(state_.services.residency.instances().size()));
    response->set_loop_lag_us(whole_microseconds(state_.loop_lag()));
    state_.run_blocking([this, reactor, response] {
      response->set_resident_bytes(state_.process_memory(getpid()));
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

grpc::ServerUnaryReactor* AdminService::ListInstances(grpc::CallbackServerContext* context,
                                                      const v1::ListInstancesRequest* /*request*/,
                                                      v1::ListInstancesResponse* response) {
  const Result<CallFrom> caller = from(*context);
  if (!caller) return refuse(*context, caller.error());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  state_.services.clock.post([this, reactor, response, audience = caller->audience()] {
    for (const residency::InstanceSnapshot& instance : state_.services.residency.instances()) {
      *response->add_instances() = to_proto(instance, audience);
    }
    state_.run_blocking([this, reactor, response] {
      for (v1::Instance& instance : *response->mutable_instances()) {
        if (instance.pid() > 0) instance.set_resident_bytes(state_.tree_memory(instance.pid()));
      }
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::LoadEvent>* AdminService::LoadModel(
    grpc::CallbackServerContext* context, const v1::LoadModelRequest* request) {
  Result<CallFrom> caller = from(*context, "load a model by hand");
  if (!caller) return refuse_stream<v1::LoadEvent>(*context, caller.error());
  return start_load(*context, state_, *std::move(caller), *request);
}

grpc::ServerWriteReactor<v1::LoadEvent>* AdminService::RetryModel(
    grpc::CallbackServerContext* context, const v1::LoadModelRequest* request) {
  Result<CallFrom> caller = from(*context, "lift a failure by hand");
  if (!caller) return refuse_stream<v1::LoadEvent>(*context, caller.error());
  return start_retry(*context, state_, *std::move(caller), *request);
}

grpc::ServerUnaryReactor* AdminService::ListFailures(grpc::CallbackServerContext* context,
                                                     const v1::ListFailuresRequest* request,
                                                     v1::ListFailuresResponse* response) {
  Result<CallFrom> caller = from(*context);
  if (!caller) return refuse(*context, caller.error());
  return start_list_failures(*context, state_, *std::move(caller), *request, *response);
}

grpc::ServerUnaryReactor* AdminService::ExplainModel(grpc::CallbackServerContext* context,
                                                     const v1::ExplainModelRequest* request,
                                                     v1::ModelReport* response) {
  Result<CallFrom> caller = from(*context);
  if (!caller) return refuse(*context, caller.error());
  return start_explain(*context, state_, *std::move(caller), *request, *response);
}

grpc::ServerUnaryReactor* AdminService::UnloadModel(grpc::CallbackServerContext* context,
                                                    const v1::UnloadModelRequest* request,
                                                    v1::UnloadModelResponse* response) {
  const Result<CallFrom> caller = from(*context, "unload a model by hand");
  if (!caller) return refuse(*context, caller.error());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto end_badly = [context, reactor, from = *caller](const Error& error) {
    rpc::finish_badly(*context, *reactor, from.detail(error), error);
  };
  state_.services.clock.post(
      [this, reactor, response, end_badly, name = request->model(), force = request->force()] {
        const Result<std::string> model = state_.name_of(name);
        if (!model) return end_badly(model.error());
        state_.services.residency.unload(
            *model, force,
            [reactor, response, end_badly](const Result<residency::UnloadOutcome>& outcome) {
              if (!outcome) return end_badly(outcome.error());
              response->set_instance_id(outcome->instance_id);
              response->set_exit(core::to_string(outcome->exit));
              response->set_took_ms(static_cast<std::uint64_t>(outcome->took.count()));
              reactor->Finish(grpc::Status::OK);
            });
      });
  return reactor;
}

grpc::ServerWriteReactor<v1::LogChunk>* AdminService::ReadLog(grpc::CallbackServerContext* context,
                                                              const v1::ReadLogRequest* request) {
  Result<CallFrom> caller = from(*context, "read logs");
  if (!caller) return refuse_stream<v1::LogChunk>(*context, caller.error());
  return start_read_log(*context, state_, *std::move(caller), *request);
}

grpc::ServerWriteReactor<v1::Event>* AdminService::WatchEvents(
    grpc::CallbackServerContext* context, const v1::WatchEventsRequest* request) {
  Result<CallFrom> caller = from(*context, "watch events, which tell of everybody's requests");
  if (!caller) return refuse_stream<v1::Event>(*context, caller.error());
  return start_watch_events(*context, state_, *request);
}

grpc::ServerUnaryReactor* AdminService::GetConfig(grpc::CallbackServerContext* context,
                                                  const v1::GetConfigRequest* /*request*/,
                                                  v1::EffectiveConfig* response) {
  const Result<CallFrom> caller = from(*context, "read the configuration");
  if (!caller) return refuse(*context, caller.error());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  state_.services.clock.post([this, reactor, response] {
    for (const catalog::Setting& setting : state_.config->settings) {
      v1::Setting& to = *response->add_settings();
      to.set_key(setting.key);
      to.set_value(setting.value);
      to.set_source(setting.source);
    }
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace berth::admin
