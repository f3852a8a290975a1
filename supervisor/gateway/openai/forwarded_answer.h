#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "supervisor/gateway/forwarding.h"
#include "supervisor/gateway/openai/event_stream.h"
#include "supervisor/gateway/openai/exchange.h"

namespace berth::gateway::openai {

// A program's answer on its way to the client (kind = "command"): a stream as it comes, with what
// every stream of ours has, anything else at once, when it is complete. Kept alive by the
// forwarding until its last call, and by the server until the answer is complete.
class ForwardedAnswer : public Handler, public ForwardResponder {
 public:
  // Core strand. `streams`: the client asked for a stream.
  ForwardedAnswer(Clock& clock, Exchange exchange, bool streams);

  // How to steer the forwarding. Core strand, before its first call.
  void run(std::function<void()> resume, std::function<void()> cancel,
           std::function<void(Error)> abort);

  void on_accepted(const std::string& /*model*/) override {}
  void on_waiting(const residency::ClaimProgress& progress) override;
  void on_head(ForwardedHead head) override;
  bool on_piece(std::string piece) override;
  void on_finished() override;
  void on_failed(const Error& error) override;

  void on_room() override;
  void on_gone() override;

 private:
  void fail(const Error& error);
  void send_kept();
  void cancel();
  void abort(Error why);
  void let_go();

  Clock& clock_;
  const Exchange exchange_;

  // From the beginning where the client asked for a stream, else from the program's first piece of
  // one. Set before that, and never after: read under the lock by the server's thread.
  std::shared_ptr<EventStream> stream_;
  std::optional<ForwardedHead> head_;
  std::string kept_;  // of an answer that is no stream
  bool over_ = false;

  std::mutex mutex_;
  // They hold the forwarding, which refers to this, until it is over.
  std::function<void()> resume_;
  std::function<void()> cancel_;
  std::function<void(Error)> abort_;
};

// Passes a request on to the program that is its model. Core strand. Returns who has to hear of the
// client.
std::shared_ptr<Handler> start_forwarded_answer(const residency::Services& services,
                                                Exchange exchange, ForwardedRequest request,
                                                bool streams);

// The event that tells of an answer that is no stream, where the client's stream has begun: the
// program's own error, if its body is one (also as the one event of a stream), on one line. Empty
// where it is none, or longer than 64 KiB: it is read on the core strand.
std::string error_event_of(const std::string& body);

}  // namespace berth::gateway::openai
