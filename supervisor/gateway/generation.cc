#include "supervisor/gateway/generation.h"

#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "common/durations.h"

namespace berth::gateway {
namespace {

std::string name_of(Reason reason) {
  return std::string(reason_info(reason).name);
}

Error not_implemented(const std::string& model) {
  return {Reason::kMethodNotAllowed,
          "Requests for " + model +
              " are not implemented: it is a program of its own (kind = \"command\"), and this "
              "version does not pass requests on to those yet. No request starts it; `berth load " +
              model + "` does."};
}

}  // namespace

std::shared_ptr<Generation> Generation::start(const residency::Services& services,
                                              core::Caller caller, core::GenerateRequest request,
                                              SteadyTime deadline,
                                              std::shared_ptr<Responder> responder) {
  // The constructor is private, so that nobody makes one that does not keep itself alive.
  const std::shared_ptr<Generation> made(new Generation(
      services, std::move(caller), std::move(request), deadline, std::move(responder)));
  services.clock.post([made] { made->begin(); });
  return made;
}

Generation::Generation(const residency::Services& services, core::Caller caller,
                       core::GenerateRequest request, SteadyTime deadline,
                       std::shared_ptr<Responder> responder)
    : services_(services),
      caller_(std::move(caller)),
      request_(std::move(request)),
      deadline_(deadline),
      responder_(std::move(responder)),
      arrived_(services.clock.now()) {}

void Generation::begin() {
  self_ = shared_from_this();
  if (cancelled_) return cancel_now();
  Result<std::shared_ptr<const catalog::Model>> model = services_.catalog()->find(request_.model);
  if (!model) return refuse(model.error());
  request_.model = (*model)->name;
  // No tenant has a line end in it.
  request_.cache_scope = caller_.tenant + "\n" + request_.user;
  // A program in the place of a worker, which no request is passed on to: none may start it, so
  // that none claims it. What stands against it says more.
  if ((*model)->settings.kind == catalog::Kind::kCommand) {
    const std::optional<Error> stands = services_.residency.refusal(*model, deadline_);
    return refuse(stands ? *stands : not_implemented((*model)->name));
  }
  responder_->on_accepted(request_.model);
  claim_ =
      services_.residency.acquire(*model, residency::RequestClass::kForeground, deadline_, *this);
}

void Generation::on_claim_progress(const residency::ClaimProgress& progress) {
  if (over_) return;
  if (!progress.queue_position) saw_load_ = true;
  responder_->on_waiting(progress);
}

void Generation::on_lease(residency::Lease lease) {
  if (over_) return;
  claim_.reset();
  const Duration waited = services_.clock.now() - arrived_;
  (saw_load_ ? load_us_ : waited_us_) = whole_microseconds(waited);
  lease_ = std::move(lease);
  instance_id_ = lease_.instance_id();
  services_.events.emit_typed(events::RequestAdmitted{.request = request_.request_id,
                                                      .model = request_.model,
                                                      .instance = instance_id_,
                                                      .waited_ms = whole_milliseconds(waited)});
  std::shared_ptr<rpc::GenerateCall> call =
      lease_.worker().generate(request_, deadline_, shared_from_this());
  // A client that stops reading leaves the worker's stream without a read, on which nothing ends
  // by itself.
  deadline_timer_ = services_.clock.sleep_until(deadline_, [this] {
    deadline_passed_ = true;
    if (const std::shared_ptr<rpc::GenerateCall> running = this->call()) running->cancel();
  });
  bool resume = false;
  {
    const std::lock_guard lock(call_mutex_);
    call_ = call;
    resume = std::exchange(resume_wanted_, false);
  }
  if (resume) call->resume();
}

void Generation::on_claim_failed(Error error) {
  if (over_) return;
  claim_.reset();
  refuse(error);
}

bool Generation::on_event(core::GenerateEvent event) {
  if (cancelled_) return true;
  if (auto* token = std::get_if<core::TokenEvent>(&event)) {
    return responder_->on_token(std::move(*token));
  }
  if (const auto* prefill = std::get_if<core::PrefillEvent>(&event)) {
    return responder_->on_prefill(*prefill);
  }
  done_ = std::move(std::get<core::DoneEvent>(event));
  done_->timings.queue_us += waited_us_;
  done_->timings.load_us = load_us_;
  return true;
}

void Generation::on_end(Status status) {
  // A good end needs nothing of the core strand, so the client does not wait for it.
  if (status && !cancelled_) responder_->on_finished({*done_, instance_id_, request_.model});
  services_.clock.post([self = shared_from_this(), status = std::move(status)] {
    if (self->over_) return;
    // The client may have gone just as the answer ended; then nobody got it.
    if (self->cancelled_ || (status && !self->done_)) return self->cancel_now();
    if (status) {
      self->end_well();
    } else {
      self->end_badly(status.error());
    }
  });
}

void Generation::close() {
  over_ = true;
  deadline_timer_.reset();
  claim_.reset();
  lease_ = {};
  // Whoever called holds a reference of its own.
  self_.reset();
}

std::shared_ptr<rpc::GenerateCall> Generation::call() {
  const std::lock_guard lock(call_mutex_);
  return call_;
}

void Generation::end_well() {
  services_.events.emit_typed(
      events::RequestFinished{.request = request_.request_id,
                              .model = request_.model,
                              .instance = instance_id_,
                              .finish_reason = done_->finish_reason,
                              .prompt_tokens = done_->usage.prompt_tokens,
                              .completion_tokens = done_->usage.completion_tokens,
                              .took_ms = whole_milliseconds(services_.clock.now() - arrived_)});
  close();
}

void Generation::end_badly(const Error& error) {
  if (deadline_passed_) {
    return fail_finally(
        Error(Reason::kDeadline, "The request's deadline passed before its answer was complete."));
  }
  if (error.reason != Reason::kWorkerDied) return fail_finally(error);
  // The stream broke; only the exit says why (L9). The lease is kept until then, so that nobody
  // else is sent to an instance that is about to be gone.
  services_.residency.explain_break(instance_id_, [self = shared_from_this()](Error cause) {
    if (!self->over_) self->fail_finally(cause);
  });
}

void Generation::fail_finally(const Error& error) {
  const std::shared_ptr<Generation> keep = shared_from_this();
  services_.events.emit_typed(events::RequestFailed{.request = request_.request_id,
                                                    .model = request_.model,
                                                    .instance = instance_id_,
                                                    .reason = name_of(error.reason),
                                                    .message = error.message});
  close();
  responder_->on_failed(error);
}

void Generation::refuse(const Error& error) {
  const std::shared_ptr<Generation> keep = shared_from_this();
  services_.events.emit_typed(events::RequestRefused{.request = request_.request_id,
                                                     .model = request_.model,
                                                     .reason = name_of(error.reason),
                                                     .message = error.message});
  close();
  responder_->on_failed(error);
}

void Generation::cancel() {
  if (cancelled_.exchange(true)) return;
  if (const std::shared_ptr<rpc::GenerateCall> running = call()) running->cancel();
  services_.clock.post([self = shared_from_this()] { self->cancel_now(); });
}

void Generation::cancel_now() {
  if (over_) return;
  const std::shared_ptr<Generation> keep = shared_from_this();
  if (const std::shared_ptr<rpc::GenerateCall> running = call()) running->cancel();
  services_.events.emit_typed(
      events::RequestCancelled{.request = request_.request_id,
                               .model = request_.model,
                               .instance = instance_id_,
                               .took_ms = whole_milliseconds(services_.clock.now() - arrived_)});
  close();
}

void Generation::resume() {
  std::shared_ptr<rpc::GenerateCall> running;
  {
    const std::lock_guard lock(call_mutex_);
    running = call_;
    resume_wanted_ = running == nullptr;
  }
  if (running) running->resume();
}

}  // namespace berth::gateway
