#include "supervisor/gateway/grpc/health_service.h"

#include <atomic>
#include <optional>
#include <utility>

#include "supervisor/rpc/error_detail.h"
#include "supervisor/rpc/event_writer.h"

namespace berth::gateway {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The server, and the services that it offers.
bool is_the_server(const std::string& service) {
  return service.empty() || service == "berth.v1.Inference" || service == "berth.v1.Admin";
}

}  // namespace

HealthChanges::Token::Token(HealthChanges& changes, std::function<void()> look)
    : shared_(changes.shared_), look_(std::move(look)) {
  const std::lock_guard lock(shared_->mutex);
  shared_->tokens.insert(this);
}

HealthChanges::Token::~Token() {
  const std::lock_guard lock(shared_->mutex);
  shared_->tokens.erase(this);
}

void HealthChanges::changed() {
  const std::lock_guard lock(shared_->mutex);
  for (Token* token : shared_->tokens) token->look_();
}

// Where the health is looked up.
struct HealthService::Looks {
  // Core strand.
  [[nodiscard]] HealthCheckResponse::ServingStatus status_of(const std::string& service) const {
    if (is_the_server(service)) {
      return ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
    }
    const auto model = services.catalog()->find(service);
    if (!model) return HealthCheckResponse::SERVICE_UNKNOWN;
    const std::string state = services.residency.state_of((*model)->name);
    const bool answers = state == "ready" || state == "busy";
    return answers ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
  }

  const residency::Services services;
  const std::function<bool()> ready;
  HealthChanges& changes;
};

// One watch: what it says is looked up on the core strand, once for any number of changes that come
// before it is.
class HealthService::WatchCall : public rpc::EventWriter<HealthCheckResponse> {
 public:
  WatchCall(grpc::CallbackServerContext& context, std::shared_ptr<const Looks> looks,
            std::string name)
      : EventWriter(context), looks_(std::move(looks)), name_(std::move(name)) {}

  void run(const std::shared_ptr<WatchCall>& self) {
    token_.emplace(looks_->changes, [weak = std::weak_ptr(self)] {
      if (const auto call = weak.lock()) call->look(call);
    });
    look(self);
  }

 private:
  void look(const std::shared_ptr<WatchCall>& self) {
    if (looking_.exchange(true)) return;
    looks_->services.clock.post([self] {
      self->looking_ = false;
      if (self->over_) return;
      const HealthCheckResponse::ServingStatus status = self->looks_->status_of(self->name_);
      if (self->told_ == status) return;
      self->told_ = status;
      HealthCheckResponse response;
      response.set_status(status);
      // Only the latest counts for a client that reads slowly.
      self->push_latest(std::move(response), [](const HealthCheckResponse&) { return true; });
    });
  }

  void on_over() override {
    over_ = true;
    // Not from within the changes' lock, which a look may hold with the last reference to this.
    looks_->services.clock.post(
        [self = std::static_pointer_cast<WatchCall>(shared_from_this())] { self->token_.reset(); });
  }

  const std::shared_ptr<const Looks> looks_;
  const std::string name_;
  std::optional<HealthChanges::Token> token_;
  std::atomic<bool> looking_{false};
  std::atomic<bool> over_{false};
  std::optional<HealthCheckResponse::ServingStatus> told_;  // core strand
};

HealthService::HealthService(residency::Services services, rpc::CallAccess access,
                             std::function<bool()> ready, HealthChanges& changes)
    : access_(std::move(access)),
      looks_(new Looks{std::move(services), std::move(ready), changes}) {}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  core::Caller caller;
  if (!is_the_server(request->service())) {
    const Result<core::Caller> known = access_.caller_of(*context);
    if (!known) {
      rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, caller, known.error(), {}),
                        known.error());
      return reactor;
    }
    caller = *known;
  }
  looks_->services.clock.post(
      [this, context, reactor, response, caller, name = request->service()] {
        const HealthCheckResponse::ServingStatus status = looks_->status_of(name);
        if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
          const Error error = looks_->services.catalog()->find(name).error();
          return rpc::finish_badly(*context, *reactor, rpc::detail_for(access_, caller, error, {}),
                                   error);
        }
        response->set_status(status);
        reactor->Finish(grpc::Status::OK);
      });
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  const auto call = std::make_shared<WatchCall>(*context, looks_, request->service());
  call->begin(call);
  if (!is_the_server(request->service())) {
    const Result<core::Caller> known = access_.caller_of(*context);
    if (!known) {
      call->fail(rpc::detail_for(access_, {}, known.error(), {}), rpc::to_status(known.error()));
      return call.get();
    }
  }
  call->run(call);
  return call.get();
}

}  // namespace berth::gateway
