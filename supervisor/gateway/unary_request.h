#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/gateway/worker_request.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::gateway {

// The client's side of a request with one answer. Calls come from the core strand and from threads
// of the RPC layer, but never overlap. None may block.
template <typename Answer>
class UnaryResponder {
 public:
  UnaryResponder() = default;
  UnaryResponder(const UnaryResponder&) = delete;
  UnaryResponder& operator=(const UnaryResponder&) = delete;
  virtual ~UnaryResponder() = default;

  // How far it is until then. Of no interest to who only waits for the answer.
  virtual void on_waiting(const residency::ClaimProgress& /*progress*/) {}
  // Exactly one of these two, last. `model`: the catalogue's name of the model. Returns why the
  // client was refused in the place of the answer, where he was: then the request failed.
  virtual Status on_answer(Answer answer, const std::string& model) = 0;
  virtual void on_failed(const Error& error) = 0;
};

// The way of one request with one answer through the supervisor. `Kind` says what is asked:
//   Request, Answer                          the types; Request has `request_id` and `model`
//   static Status fits(const catalog::Model&)
//   static unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient&, const Request&, SteadyTime
//   deadline,
//                                           rpc::OnAnswer<Answer>)
//   static uint32_t prompt_tokens(const Answer&)   for the record
template <typename Kind>
class UnaryRequest : public WorkerRequest {
 public:
  using Request = typename Kind::Request;
  using Answer = typename Kind::Answer;
  using Responder = UnaryResponder<Answer>;

  // Starts. `request.model` may be an alias; the request has been validated. `deadline`: when it
  // must have ended. Any thread; the responder is called later, never from within, and not after
  // cancel().
  static std::shared_ptr<UnaryRequest> start(const residency::Services& services,
                                             core::Caller caller, Request request,
                                             SteadyTime deadline,
                                             std::shared_ptr<Responder> responder) {
    std::shared_ptr<UnaryRequest> made(new UnaryRequest(
        services, std::move(caller), std::move(request), deadline, std::move(responder)));
    launch(made);
    return made;
  }

 private:
  UnaryRequest(const residency::Services& services, core::Caller caller, Request request,
               SteadyTime deadline, std::shared_ptr<Responder> responder)
      : WorkerRequest(services, {std::move(caller), request.request_id, request.model, deadline,
                                 core::bytes_of(request)}),
        request_(std::move(request)),
        responder_(std::move(responder)) {}

  [[nodiscard]] Status fits(const catalog::Model& model) const override {
    return Kind::fits(model);
  }
  void on_accepted(const std::string& model) override { request_.model = model; }
  void on_waiting(const residency::ClaimProgress& progress) override {
    responder_->on_waiting(progress);
  }
  std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, SteadyTime deadline) override {
    auto self = std::static_pointer_cast<UnaryRequest>(shared_from_this());
    const Request request = std::move(request_);
    return Kind::send(worker, request, deadline,
                      [self](Result<Answer> answer) { self->on_answer(std::move(answer)); });
  }
  void on_answer(Result<Answer> answer) {
    if (!answer) return end(fail(answer.error()));
    prompt_tokens_ = Kind::prompt_tokens(*answer);
    if (cancelled()) return end({});
    const Status given = responder_->on_answer(*std::move(answer), model());
    if (!given) return end_refused(given.error());
    end({});
  }
  [[nodiscard]] Served served() const override { return {"stop", prompt_tokens_, 0}; }
  void on_failed(const Error& error) override { responder_->on_failed(error); }

  Request request_;  // until it is sent
  const std::shared_ptr<Responder> responder_;
  std::uint32_t prompt_tokens_ = 0;  // the call's thread, then the core strand
};

}  // namespace berth::gateway
