#include "supervisor/gateway/worker_request.h"

#include <utility>

#include "common/durations.h"
#include "supervisor/core/entitlement.h"

namespace berth::gateway {
namespace {

std::string name_of(Reason reason) {
  return std::string(reason_info(reason).name);
}

}  // namespace

WorkerRequest::WorkerRequest(const residency::Services& services, Asked asked)
    : services_(services), asked_(std::move(asked)), arrived_(services.clock.now()) {}

void WorkerRequest::launch(const std::shared_ptr<WorkerRequest>& request) {
  request->services_.clock.post([request] { request->begin(); });
}

Status WorkerRequest::fits(const catalog::Model& /*model*/) const {
  return {};
}

void WorkerRequest::begin() {
  self_ = shared_from_this();
  const Result<std::shared_ptr<const catalog::Model>> model =
      services_.catalog()->find(asked_.model);
  residency::RequestArrival arrival;
  arrival.id = asked_.id;
  if (model) arrival.model = (*model)->name;
  arrival.tenant = asked_.caller.tenant;
  arrival.protocol = asked_.caller.door;
  arrival.deadline = asked_.deadline;
  arrival.cancel = [weak = weak_from_this()] {
    if (const std::shared_ptr<WorkerRequest> self = weak.lock()) self->end_by_hand();
  };
  line_ = services_.requests.arrive(std::move(arrival));
  if (cancelled_) return cancel_now();
  if (!model) return refuse(model.error());
  asked_.model = (*model)->name;
  if (const Status fit = fits(**model); !fit) return refuse(fit.error());
  Result<core::HeldBytes> held = services_.waiting->take(asked_.caller.tenant, asked_.bytes);
  if (!held) return refuse(held.error());
  held_ = *std::move(held);
  on_accepted(asked_.model);
  claim_ = services_.residency.acquire(*model, residency::RequestClass::kForeground,
                                       asked_.deadline, *this);
}

void WorkerRequest::on_claim_progress(const residency::ClaimProgress& progress) {
  if (over_) return;
  const bool loading = !progress.queue_position && progress.phase != "queued";
  line_->waiting(loading);
  on_waiting(progress);
}

void WorkerRequest::on_lease(residency::Lease lease) {
  if (over_) return;
  claim_.reset();
  const Duration waited = services_.clock.now() - arrived_;
  lease_ = std::move(lease);
  const Duration load = lease_.load_since(arrived_);
  waited_ = {.queue_us = whole_microseconds(waited - load), .load_us = whole_microseconds(load)};
  instance_id_ = lease_.instance_id();
  note_admitted(waited);
  // A client that stops reading leaves the worker's stream without a read, on which nothing ends
  // by itself.
  deadline_timer_ = services_.clock.sleep_until(asked_.deadline, [this] {
    abort_now(
        Error(Reason::kDeadline, "The request's deadline passed before its answer was complete."));
  });
  rpc::WorkerClient& worker = lease_.worker();
  if (!services_.run_blocking || !converts() || asked_.bytes < kLargeRequest) {
    keep_call(send(worker, asked_.deadline));
    held_ = {};
    return;
  }
  sending_ = true;
  services_.run_blocking([weak = weak_from_this(), &worker] {
    if (const std::shared_ptr<WorkerRequest> self = weak.lock()) self->send_large(worker);
  });
}

void WorkerRequest::send_large(rpc::WorkerClient& worker) {
  {
    const std::lock_guard lock(call_mutex_);
    if (withdrawn_) return;
    send_begun_ = true;
  }
  keep_call(send(worker, asked_.deadline));
  services_.clock.post([self = shared_from_this()] { self->on_sent(); });
}

void WorkerRequest::on_sent() {
  sending_ = false;
  held_ = {};
  if (over_ || ended_for_) call()->cancel();
  if (over_) lease_ = {};
}

bool WorkerRequest::withdraw() {
  if (!sending_) return false;
  const std::lock_guard lock(call_mutex_);
  withdrawn_ = !send_begun_;
  sending_ = !withdrawn_;
  return withdrawn_;
}

void WorkerRequest::keep_call(const std::shared_ptr<rpc::WorkerCall>& call) {
  bool resume = false;
  {
    const std::lock_guard lock(call_mutex_);
    call_ = call;
    resume = std::exchange(resume_wanted_, false);
  }
  if (resume) call->resume();
}

void WorkerRequest::on_claim_failed(Error error) {
  if (over_) return;
  claim_.reset();
  refuse(error);
}

void WorkerRequest::end(Status status) {
  services_.clock.post([self = shared_from_this(), status = std::move(status)] {
    if (self->over_) return;
    // The client may have gone just as the answer ended; then nobody got it.
    if (self->cancelled_) return self->cancel_now();
    if (!status) return self->end_badly(status.error());
    self->note_finished();
    self->close();
  });
}

void WorkerRequest::end_refused(Error why) {
  services_.clock.post([self = shared_from_this(), why = std::move(why)] {
    if (self->over_) return;
    if (self->cancelled_) return self->cancel_now();
    self->note_failed(why);
    self->close();
  });
}

void WorkerRequest::end_badly(const Error& error) {
  if (ended_for_) return fail_finally(*ended_for_);
  if (error.reason != Reason::kWorkerDied) return fail_finally(error);
  // The stream broke; only the exit says why (L9). The lease is kept until then, so that nobody
  // else is sent to an instance that is about to be gone.
  services_.residency.explain_break(instance_id_, [self = shared_from_this()](const Error& cause) {
    if (!self->over_) self->fail_finally(cause);
  });
}

void WorkerRequest::close() {
  over_ = true;
  deadline_timer_.reset();
  claim_.reset();
  withdraw();
  // While it is being sent, on_sent() lets go of these.
  if (!sending_) {
    lease_ = {};
    held_ = {};
  }
  // Whoever called holds a reference of its own.
  self_.reset();
}

std::shared_ptr<rpc::WorkerCall> WorkerRequest::call() {
  const std::lock_guard lock(call_mutex_);
  return call_;
}

void WorkerRequest::cancel() {
  if (cancelled_.exchange(true)) return;
  if (const std::shared_ptr<rpc::WorkerCall> running = call()) running->cancel();
  services_.clock.post([self = shared_from_this()] { self->cancel_now(); });
}

void WorkerRequest::cancel_now() {
  if (over_) return;
  const std::shared_ptr<WorkerRequest> keep = shared_from_this();
  if (const std::shared_ptr<rpc::WorkerCall> running = call()) running->cancel();
  note_cancelled();
  close();
}

void WorkerRequest::abort(Error why) {
  services_.clock.post([self = shared_from_this(), why = std::move(why)] { self->abort_now(why); });
}

void WorkerRequest::abort_now(const Error& why) {
  if (over_ || ended_for_) return;
  if (withdraw()) return fail_finally(why);
  const std::shared_ptr<rpc::WorkerCall> running = call();
  if (!running && !sending_) return refuse(why);
  // The call's end comes with an error of its own, or well, if it had ended before.
  ended_for_ = why;
  if (running) running->cancel();
}

void WorkerRequest::end_by_hand() {
  if (over_ || ended_for_) return;
  by_hand_ = true;
  abort_now({Reason::kConflict, "The request was cancelled by its id."});
}

void WorkerRequest::resume() {
  std::shared_ptr<rpc::WorkerCall> running;
  {
    const std::lock_guard lock(call_mutex_);
    running = call_;
    resume_wanted_ = running == nullptr;
  }
  if (running) running->resume();
}

void WorkerRequest::note_admitted(Duration waited) {
  line_->admitted(instance_id_);
  services_.events.emit_typed(events::RequestAdmitted{.request = asked_.id,
                                                      .model = asked_.model,
                                                      .instance = instance_id_,
                                                      .waited_ms = whole_milliseconds(waited),
                                                      .tenant = asked_.caller.tenant,
                                                      .protocol = asked_.caller.door});
}

void WorkerRequest::note_finished() {
  const Served answer = served();
  line_->end(residency::RequestStage::kFinished, std::nullopt,
             residency::RequestUsage{.prompt = answer.prompt_tokens,
                                     .cached = answer.cached_tokens,
                                     .completion = answer.completion_tokens});
  services_.events.emit_typed(
      events::RequestFinished{.request = asked_.id,
                              .model = asked_.model,
                              .instance = instance_id_,
                              .finish_reason = answer.finish_reason,
                              .prompt_tokens = answer.prompt_tokens,
                              .completion_tokens = answer.completion_tokens,
                              .took_ms = whole_milliseconds(services_.clock.now() - arrived_),
                              .tenant = asked_.caller.tenant,
                              .protocol = asked_.caller.door});
}

void WorkerRequest::note_cancelled() {
  line_->end(residency::RequestStage::kCancelled);
  services_.events.emit_typed(
      events::RequestCancelled{.request = asked_.id,
                               .model = asked_.model,
                               .instance = instance_id_,
                               .took_ms = whole_milliseconds(services_.clock.now() - arrived_),
                               .tenant = asked_.caller.tenant,
                               .protocol = asked_.caller.door});
}

void WorkerRequest::note_failed(const Error& error) {
  if (by_hand_) return note_cancelled();
  line_->end(residency::RequestStage::kFailed, error.reason);
  services_.events.emit_typed(events::RequestFailed{.request = asked_.id,
                                                    .model = asked_.model,
                                                    .instance = instance_id_,
                                                    .reason = name_of(error.reason),
                                                    .message = core::message_for_log(error),
                                                    .tenant = asked_.caller.tenant,
                                                    .protocol = asked_.caller.door});
}

void WorkerRequest::fail_finally(const Error& error) {
  const std::shared_ptr<WorkerRequest> keep = shared_from_this();
  note_failed(error);
  close();
  on_failed(error);
}

void WorkerRequest::refuse(const Error& error) {
  const std::shared_ptr<WorkerRequest> keep = shared_from_this();
  if (by_hand_) {
    note_cancelled();
  } else {
    line_->end(residency::RequestStage::kRefused, error.reason);
    services_.requests.tell_refusal(events::RequestRefused{.request = asked_.id,
                                                           .model = asked_.model,
                                                           .reason = name_of(error.reason),
                                                           .message = core::message_for_log(error),
                                                           .tenant = asked_.caller.tenant,
                                                           .protocol = asked_.caller.door});
  }
  close();
  on_failed(error);
}

}  // namespace berth::gateway
