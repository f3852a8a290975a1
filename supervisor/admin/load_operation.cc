#include "supervisor/admin/load_operation.h"

#include <utility>

#include "supervisor/admin/memory_state.h"

namespace berth::admin {
namespace {

Error admins_only(const std::string& what) {
  return {Reason::kPermissionDenied, "Only an admin may " + what + " by hand."};
}

// A process of this load exists, so that the load goes on without a claim (L5).
bool load_runs(const residency::ClaimProgress& progress) {
  return !progress.queue_position && progress.phase != "stopping" && progress.phase != "back_off" &&
         progress.phase != "queued";
}

}  // namespace

std::shared_ptr<LoadOperation> LoadOperation::start(ServerState& state, LoadAsk ask,
                                                    std::shared_ptr<LoadListener> listener) {
  const std::shared_ptr<LoadOperation> made(
      new LoadOperation(state, std::move(ask), std::move(listener)));
  state.services.clock.post([made] { made->begin(); });
  return made;
}

LoadOperation::LoadOperation(ServerState& state, LoadAsk ask,
                             std::shared_ptr<LoadListener> listener)
    : state_(state), ask_(std::move(ask)), listener_(std::move(listener)) {}

void LoadOperation::begin() {
  if (!listener_) return;
  // A load lifts by hand what stands against the model.
  if (!ask_.caller.admin()) return fail_with(admins_only("load a model"));
  const auto model = state_.services.catalog()->find(ask_.model);
  if (!model) return fail_with(ask_.retry ? retry_of_gone(model.error()) : model.error());
  model_ = (*model)->name;
  const std::string before = state_.services.residency.state_of(model_);
  if (before == "ready" || before == "busy") return done();
  // One that has a problem is refused, and then nothing is tried that could say more.
  if (ask_.retry && (*model)->problem.empty()) {
    const auto lifted = state_.services.residency.retry(model_, "berth retry");
    if (lifted) listener_->on_load_lifted(*lifted);
  }
  self_ = shared_from_this();
  claim_ = state_.services.residency.acquire(*model, residency::RequestClass::kOperator,
                                             ask_.deadline, *this);
}

Error LoadOperation::retry_of_gone(const Error& unknown) {
  const auto lifted = state_.services.residency.retry(ask_.model, "berth retry");
  if (!lifted) return unknown;
  listener_->on_load_lifted(*lifted);
  return {Reason::kUnknownModel, "The failure of " + lifted->model +
                                     " does not stand any more; there is nothing to load, as no "
                                     "model of this name is in the catalogue."};
}

void LoadOperation::on_claim_progress(const residency::ClaimProgress& progress) {
  if (!listener_) return;
  if (ask_.wait) return listener_->on_load_progress(progress);
  // Before that it may still be refused, or wait for something that drops it with its claim.
  if (load_runs(progress)) done();
}

void LoadOperation::on_lease(residency::Lease lease) {
  lease = {};
  // Once it is back, so that the instance is told as ready and not as busy with this.
  state_.services.clock.post([self = shared_from_this()] { self->done(); });
}

void LoadOperation::on_claim_failed(Error error) {
  fail_with(error);
}

void LoadOperation::done() {
  const std::shared_ptr<LoadListener> listener = std::exchange(listener_, nullptr);
  if (listener) {
    const residency::Residency& residency = state_.services.residency;
    std::optional<v1::Instance> live;
    for (const residency::InstanceSnapshot& instance : residency.instances()) {
      if (instance.model != model_ || instance.state == "gone" || instance.state == "stuck") {
        continue;
      }
      live = charged_instance(instance, residency.memory_now().domains, ask_.caller);
      break;
    }
    listener->on_load_done(live);
  }
  drop();
}

void LoadOperation::fail_with(const Error& error) {
  const std::shared_ptr<LoadListener> listener = std::exchange(listener_, nullptr);
  if (listener) listener->on_load_failed(error);
  drop();
}

void LoadOperation::stop() {
  state_.services.clock.post([self = shared_from_this()] {
    self->listener_.reset();
    self->drop();
  });
}

void LoadOperation::drop() {
  const std::shared_ptr<LoadOperation> keep = std::move(self_);
  claim_.reset();
}

void unload_model(ServerState& state, std::string model, bool force, const core::Caller& caller,
                  std::function<void(Result<v1::UnloadModelResponse>)> done) {
  state.services.clock.post([&state, model = std::move(model), force, admin = caller.admin(),
                             done = std::move(done)] {
    if (!admin) return done(fail(admins_only("unload a model")));
    const Result<std::string> name = state.name_of(model);
    if (!name) return done(fail(name.error()));
    state.services.residency.unload(*name, force, [done](Result<residency::UnloadOutcome> outcome) {
      if (!outcome) return done(fail(outcome.error()));
      v1::UnloadModelResponse response;
      response.set_instance_id(outcome->instance_id);
      response.set_exit(core::to_string(outcome->exit));
      response.set_took_ms(static_cast<std::uint64_t>(outcome->took.count()));
      done(std::move(response));
    });
  });
}

void cancel_request(ServerState& state, std::string id, core::Caller caller,
                    std::function<void(Status)> done) {
  state.services.clock.post(
      [&state, id = std::move(id), caller = std::move(caller), done = std::move(done)] {
        std::optional<std::string> tenant;
        if (!caller.admin()) tenant = caller.tenant;
        if (state.services.requests.cancel(id, tenant) == 0) {
          return done(fail(Reason::kNotFound, "No request " + id + " waits or runs."));
        }
        done({});
      });
}

}  // namespace berth::admin
