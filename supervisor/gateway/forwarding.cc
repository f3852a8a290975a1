#include "supervisor/gateway/forwarding.h"

#include <utility>

#include "supervisor/catalog/catalog.h"
#include "supervisor/catalog/model.h"
#include "supervisor/rpc/command_events.h"

namespace berth::gateway {
namespace {

// What of a program's statuses a client may see. Its 401 is about berth's own key, and what it
// redirects to is not for others.
bool passes(unsigned int status) {
  constexpr unsigned int kUnauthorized = 401;
  return (status >= 200 && status < 300) ||
         (status >= 400 && status < 600 && status != kUnauthorized);
}

bool succeeded(unsigned int status) {
  return status < 300;
}

std::uint64_t bytes_of(const ForwardedRequest& request) {
  std::uint64_t bytes = 0;
  for (const std::string& piece : request.body) bytes += piece.size();
  return bytes;
}

}  // namespace

Result<bool> is_forwarded(const residency::Services& services, const std::string& model) {
  const Result<std::shared_ptr<const catalog::Model>> found = services.catalog()->find(model);
  if (!found) return fail(found.error());
  return (*found)->settings.kind == catalog::Kind::kCommand;
}

std::shared_ptr<Forwarding> Forwarding::start(const residency::Services& services,
                                              core::Caller caller, ForwardedRequest request,
                                              SteadyTime deadline,
                                              std::shared_ptr<ForwardResponder> responder) {
  std::shared_ptr<Forwarding> made(new Forwarding(services, std::move(caller), std::move(request),
                                                  deadline, std::move(responder)));
  launch(made);
  return made;
}

Forwarding::Forwarding(const residency::Services& services, core::Caller caller,
                       ForwardedRequest request, SteadyTime deadline,
                       std::shared_ptr<ForwardResponder> responder)
    : WorkerRequest(services, {std::move(caller), std::move(request.id), std::move(request.model),
                               deadline, bytes_of(request)}),
      request_{std::move(request.path), std::move(request.body)},
      responder_(std::move(responder)) {}

std::shared_ptr<Forwarding> Forwarding::shared() {
  return std::static_pointer_cast<Forwarding>(shared_from_this());
}

Status Forwarding::fits(const catalog::Model& model) const {
  if (model.settings.kind != catalog::Kind::kCommand) {
    return fail(Reason::kInternal, model.name + " is no program that requests are passed on to.");
  }
  if (request_.body.size() < 2) {
    return invalid_argument("model", "The body has no text as its `model`.");
  }
  return {};
}

void Forwarding::on_accepted(const std::string& model) {
  responder_->on_accepted(model);
}

void Forwarding::on_waiting(const residency::ClaimProgress& progress) {
  responder_->on_waiting(progress);
}

std::unique_ptr<rpc::WorkerCall> Forwarding::send(rpc::WorkerClient& worker, SteadyTime deadline) {
  return worker.forward(std::move(request_), deadline, shared());
}

void Forwarding::on_head(rpc::ForwardHead head) {
  if (cancelled()) return;
  if (!passes(head.status)) {
    refusal_ =
        Error(Reason::kInternal, "The program of " + model() + " answered " +
                                     std::to_string(head.status) + ", which is not passed on.");
    return abort(*refusal_);
  }
  if (head.content_type.empty()) head.content_type = "application/octet-stream";
  const AnswerKind kind = answer_kind(head.content_type);
  names_.emplace(kind, model());
  if (!succeeded(head.status)) refused_ = rpc::command_error(head.status, {}, {});
  may_break_off_ = kind == AnswerKind::kEvents && !refused_;
  responder_->on_head({static_cast<int>(head.status), std::move(head.content_type),
                       std::move(head.retry_after), may_break_off_});
}

bool Forwarding::on_piece(std::string piece) {
  if (cancelled() || refusal_) return true;
  if (!refused_) line().first_token();
  std::string renamed = names_->rename(piece);
  return renamed.empty() || responder_->on_piece(std::move(renamed));
}

bool Forwarding::complete() const {
  return may_break_off_ && names_->event_stream_complete();
}

void Forwarding::on_end(Status status) {
  if (refusal_) {
    status = fail(*refusal_);
  } else if (status && !cancelled()) {
    if (may_break_off_ && !names_->event_stream_ended()) {
      status = fail(Reason::kWorkerDied, "The program ended its stream without an end.");
    } else {
      responder_->on_finished();
      if (refused_) return end_refused(*std::move(refused_));
    }
  }
  end(std::move(status));
}

WorkerRequest::Served Forwarding::served() const {
  const core::Usage usage = names_ ? names_->usage() : core::Usage();
  return {{}, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens};
}

void Forwarding::on_failed(const Error& error) {
  responder_->on_failed(error);
}

}  // namespace berth::gateway
