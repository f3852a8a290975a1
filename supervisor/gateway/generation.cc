#include "supervisor/gateway/generation.h"

#include <utility>
#include <variant>

namespace berth::gateway {

std::shared_ptr<Generation> Generation::start(const residency::Services& services,
                                              core::Caller caller, core::GenerateRequest request,
                                              SteadyTime deadline,
                                              std::shared_ptr<Responder> responder) {
  // The constructor is private, so that nobody makes one that does not keep itself alive.
  std::shared_ptr<Generation> made(new Generation(services, std::move(caller), std::move(request),
                                                  deadline, std::move(responder)));
  launch(made);
  return made;
}

Generation::Generation(const residency::Services& services, core::Caller caller,
                       core::GenerateRequest request, SteadyTime deadline,
                       std::shared_ptr<Responder> responder)
    : WorkerRequest(services, {std::move(caller), request.request_id, request.model, deadline,
                               core::bytes_of(request)}),
      request_(std::move(request)),
      responder_(std::move(responder)) {}

std::shared_ptr<Generation> Generation::shared() {
  return std::static_pointer_cast<Generation>(shared_from_this());
}

void Generation::on_accepted(const std::string& model) {
  request_.model = model;
  // No tenant has a line end in it.
  request_.cache_scope = caller().tenant + "\n" + request_.user;
  responder_->on_accepted(model);
}

void Generation::on_waiting(const residency::ClaimProgress& progress) {
  responder_->on_waiting(progress);
}

std::unique_ptr<rpc::WorkerCall> Generation::send(rpc::WorkerClient& worker, SteadyTime deadline) {
  const core::GenerateRequest request = std::move(request_);
  return worker.generate(request, deadline, shared());
}

bool Generation::on_event(core::GenerateEvent event) {
  if (cancelled()) return true;
  if (auto* token = std::get_if<core::TokenEvent>(&event)) {
    line().tokens(static_cast<std::uint32_t>(token->ids.size()));
    return responder_->on_token(std::move(*token));
  }
  if (const auto* prefill = std::get_if<core::PrefillEvent>(&event)) {
    line().prefill(prefill->done, prefill->total);
    return responder_->on_prefill(*prefill);
  }
  done_ = std::move(std::get<core::DoneEvent>(event));
  done_->timings.queue_us += waited().queue_us;
  done_->timings.load_us = waited().load_us;
  return true;
}

void Generation::on_end(Status status) {
  if (status && !cancelled()) {
    if (done_) {
      responder_->on_finished({*done_, instance_id(), model()});
    } else {
      status = fail(Reason::kInternal, "The worker ended its answer without an end.");
    }
  }
  end(std::move(status));
}

WorkerRequest::Served Generation::served() const {
  return {done_->finish_reason, done_->usage.prompt_tokens, done_->usage.completion_tokens,
          done_->usage.cached_tokens};
}

void Generation::on_failed(const Error& error) {
  responder_->on_failed(error);
}

}  // namespace berth::gateway
