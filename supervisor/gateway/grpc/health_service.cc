#include "supervisor/gateway/grpc/health_service.h"

#include <optional>
#include <string>
#include <utility>

#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::gateway {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// gRPC keeps a request as long as its call, and what nobody asked for with it.
Status check_length(const HealthCheckRequest& request) {
  if (request.ByteSizeLong() <= HealthService::kMostRequest) return {};
  ErrorExtras extras;
  extras.param = "service";
  return fail(Error(Reason::kInvalidArgument,
                    "The request is longer than " + std::to_string(HealthService::kMostRequest) +
                        " bytes. Send the name of a model, or none.",
                    std::move(extras)));
}

// Whether this caller, who may be unknown, is told that.
Status may_ask(const HealthCheckRequest& request, const Result<core::Caller>& caller) {
  if (Status short_enough = check_length(request); !short_enough) return short_enough;
  if (!caller && !HealthWatches::is_the_server(request.service())) return fail(caller.error());
  return {};
}

}  // namespace

// One watch, which ends with its caller's rights.
class HealthService::WatchCall : public rpc::EventWriter<HealthCheckResponse>,
                                 public HealthWatches::Listener {
 public:
  WatchCall(grpc::CallbackServerContext& context, std::shared_ptr<const rpc::CallAccess> access,
            core::Caller caller)
      : EventWriter(context), access_(std::move(access)), caller_(std::move(caller)) {}

  // Before gRPC has it.
  void run(std::unique_ptr<HealthWatches::Watch> watch, std::shared_ptr<void> known) {
    watch_ = std::move(watch);
    known_ = std::move(known);
  }
  void refuse(const Error& error) {
    const v1::ErrorDetail detail = rpc::detail_for(*access_, caller_, error, {});
    Error told = error;
    told.message = detail.message();
    fail(detail, rpc::to_status(told));
  }

 private:
  void on_health(HealthWatches::Health health) override {
    if (told_ == health) return;
    told_ = health;
    HealthCheckResponse response;
    response.set_status(health);
    // Only the latest counts for a client that reads slowly.
    push_latest(std::move(response), [](const HealthCheckResponse&) { return true; });
  }
  void on_over() override {
    watch_.reset();
    known_.reset();
  }

  const std::shared_ptr<const rpc::CallAccess> access_;
  const core::Caller caller_;
  std::unique_ptr<HealthWatches::Watch> watch_;
  std::shared_ptr<void> known_;
  std::optional<HealthWatches::Health> told_;  // core strand
};

HealthService::HealthService(residency::Services services, rpc::CallAccess access,
                             HealthWatches& watches, WatchCaller watch_caller)
    : services_(std::move(services)),
      access_(std::make_shared<const rpc::CallAccess>(std::move(access))),
      watches_(watches),
      watch_caller_(std::move(watch_caller)) {}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const Result<core::Caller> known = access_->caller_of(*context);
  const core::Caller caller = known.value_or(core::Caller());
  if (const Status may = may_ask(*request, known); !may) {
    rpc::finish_badly(*context, *reactor, rpc::detail_for(*access_, caller, may.error(), {}),
                      may.error());
    return reactor;
  }
  services_.clock.post([this, context, reactor, response, caller, name = request->service()] {
    const HealthWatches::Health health = watches_.health_of(name);
    if (health == HealthCheckResponse::SERVICE_UNKNOWN) {
      const Error error = services_.catalog()->find(name).error();
      return rpc::finish_badly(*context, *reactor, rpc::detail_for(*access_, caller, error, {}),
                               error);
    }
    response->set_status(health);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  const Result<core::Caller> known = access_->caller_of(*context);
  const auto call = std::make_shared<WatchCall>(*context, access_, known.value_or(core::Caller()));
  call->begin(call);
  if (const Status may = may_ask(*request, known); !may) {
    call->refuse(may.error());
    return call.get();
  }
  std::optional<std::string> tenant;
  if (known) tenant = known->tenant;
  auto watch = watches_.watch(request->service(), std::move(tenant), call);
  if (!watch) {
    call->refuse(watch.error());
    return call.get();
  }
  std::shared_ptr<void> same_caller;
  if (known && watch_caller_) {
    same_caller = watch_caller_(*known, [weak = std::weak_ptr(call)](const Error& error) {
      if (const auto refused = weak.lock()) refused->refuse(error);
    });
  }
  call->run(*std::move(watch), std::move(same_caller));
  return call.get();
}

}  // namespace berth::gateway
