#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"

namespace berth::gateway {

// A client's HTTP request for a model that is a program of its own (kind = "command", L27).
struct ForwardedRequest {
  std::string id;     // of the request
  std::string model;  // as the client said it; may be an alias
  std::string path;   // "/v1/chat/completions", below which the program has the same
  std::string body;   // as it came: well-formed JSON, an object with the string `model`
};

// The head of a program's answer, for the client. What else an answer of ours has (X-Request-Id,
// Cache-Control) is not in it.
struct ForwardedHead {
  int status = 0;            // 200 to 299 or 400 to 599
  std::string content_type;  // as the program said it; never empty
  std::string retry_after;   // of that header; empty: none
  bool event_stream = false;
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
// thread; `done` is called on the core strand, later. Errors: kUnknownModel and what else the
// catalogue says of a model that cannot be asked for.
void ask_whether_forwarded(const residency::Services& services, std::string model,
                           std::function<void(Result<bool>)> done);

// The way of one request through the supervisor to a program, and of its answer back: catalogue,
// residency, the program's HTTP. Only `model` is changed, both ways, in place: every other byte is
// passed on as it came, and nothing is kept. Keeps itself alive until the responder has got its
// last call, or cancel() has taken effect.
class Forwarding {
 public:
  // Starts. `deadline`: when it must have ended. Any thread; the responder is called later, never
  // from within.
  static std::shared_ptr<Forwarding> start(const residency::Services& services, core::Caller caller,
                                           ForwardedRequest request, SteadyTime deadline,
                                           std::shared_ptr<ForwardResponder> responder);

  Forwarding() = default;
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  virtual ~Forwarding() = default;

  // The client went away: the connection to the program is closed at once (T31); no more calls of
  // the responder once this has taken effect on the core strand. Any thread, any number of times.
  virtual void cancel() = 0;
  // The responder has room again. Any thread.
  virtual void resume() = 0;
};

}  // namespace berth::gateway
