#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/gateway/model_name.h"
#include "supervisor/gateway/worker_request.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/forward.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::gateway {

// A client's HTTP request for a model that is a program of its own (kind = "command", L27).
struct ForwardedRequest {
  std::string id;     // of the request
  std::string model;  // as the client said it; may be an alias
  std::string path;   // "/v1/chat/completions", below which the program has the same
  // As cut_at_model() leaves it, which reads through it and may take a while, off the core strand.
  // It came as well-formed JSON, an object with the string `model`.
  std::vector<std::string> body;
};

// The head of a program's answer, for the client. What else an answer of ours has (X-Request-Id,
// Cache-Control) is not in it.
struct ForwardedHead {
  int status = 0;             // 200 to 299 or 400 to 599
  std::string content_type;   // as the program said it; never empty
  std::string retry_after;    // of that header; empty: none
  bool event_stream = false;  // of events; what has the status of an error is a whole answer
};

// The client's side of a request that is passed on. Calls come from the core strand and never
// overlap. None may block.
class ForwardResponder {
 public:
  ForwardResponder() = default;
  ForwardResponder(const ForwardResponder&) = delete;
  ForwardResponder& operator=(const ForwardResponder&) = delete;
  virtual ~ForwardResponder() = default;

  // The model's catalogue name; once, first, unless the request is refused before.
  virtual void on_accepted(const std::string& model) = 0;
  virtual void on_waiting(const residency::ClaimProgress& progress) = 0;
  // The program answers; once, before any piece.
  virtual void on_head(ForwardedHead head) = 0;
  // The next piece of the body, as it is to be sent; `model` in it is the catalogue's. Returns
  // whether there is room for one more; false pauses until Forwarding::resume().
  virtual bool on_piece(std::string piece) = 0;
  // Exactly one of these two, last. The answer is complete; an event stream had its "[DONE]", or
  // ended in an error event of the program's.
  virtual void on_finished() = 0;
  // Before on_head(): the refusal. After it: the answer broke off; an event stream now gets an
  // error event on a line of its own (what came may have ended within a line), and whatever else
  // has to be broken off visibly.
  virtual void on_failed(const Error& error) = 0;
};

// Whether requests for that model (a name or an alias) are passed on, or generated from. Any
// thread. Errors: kUnknownModel and what else the catalogue says of a model that cannot be asked
// for.
Result<bool> is_forwarded(const residency::Services& services, const std::string& model);

// The way of one request through the supervisor to a program, and of its answer back: the program's
// HTTP in the place of a worker's protocol. Only `model` is changed, both ways, in place: every
// other byte is passed on as it came, and nothing is kept. cancel() closes the connection to the
// program at once (T31). A program's own refusal is passed on, and recorded as a failure with the
// reason that is nearest to its status.
class Forwarding : public WorkerRequest, public rpc::ForwardSink {
 public:
  // Starts. `deadline`: when it must have ended. Any thread; the responder is called later, never
  // from within. After cancel() it is not called any more; after resume() it gets more. Errors,
  // besides those of the residency: kInvalidArgument (no `model`, or the model is no program),
  // kInternal (what the program answered cannot be passed on).
  static std::shared_ptr<Forwarding> start(const residency::Services& services, core::Caller caller,
                                           ForwardedRequest request, SteadyTime deadline,
                                           std::shared_ptr<ForwardResponder> responder);

  // For rpc.
  void on_head(rpc::ForwardHead head) override;
  bool on_piece(std::string piece) override;
  [[nodiscard]] bool complete() const override;
  void on_end(Status status) override;

 private:
  Forwarding(const residency::Services& services, core::Caller caller, ForwardedRequest request,
             SteadyTime deadline, std::shared_ptr<ForwardResponder> responder);

  [[nodiscard]] Status fits(const catalog::Model& model) const override;
  void on_accepted(const std::string& model) override;
  void on_waiting(const residency::ClaimProgress& progress) override;
  [[nodiscard]] bool converts() const override { return false; }
  std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, SteadyTime deadline) override;
  [[nodiscard]] Served served() const override;
  void on_failed(const Error& error) override;
  [[nodiscard]] std::shared_ptr<Forwarding> shared();

  rpc::ForwardRequest request_;
  const std::shared_ptr<ForwardResponder> responder_;
  // From the head of the answer on. Core strand.
  std::optional<Error> refusal_;  // by us: it cannot be passed on
  std::optional<Error> refused_;  // by the program: it goes to the client as it is
  bool may_break_off_ = false;    // an event stream, which says itself that it is complete
  std::optional<AnswerNames> names_;
};

}  // namespace berth::gateway
