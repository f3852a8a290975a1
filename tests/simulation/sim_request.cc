#include "tests/simulation/sim_request.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/generation.h"
#include "supervisor/residency/residency.h"

namespace berth::sim {
namespace {

constexpr Duration kBreakWait = std::chrono::seconds(1);

}  // namespace

// What the stream tells, passed on to the core strand, and dropped when the client is gone.
class SimRequest::Sink : public rpc::GenerateSink {
 public:
  Sink(SimRequest& request, SimClock& clock) : request_(&request), clock_(clock) {}

  bool on_event(core::GenerateEvent event) override {
    done_ = done_ || std::holds_alternative<core::DoneEvent>(event);
    return true;
  }
  void on_end(Status status) override {
    clock_.post([self = self_, status = std::move(status)] {
      const auto sink = self.lock();
      if (!sink || sink->request_ == nullptr) return;
      if (sink->ended_) sink->request_->client_.complain("a stream ended twice");
      if (status && !sink->done_) sink->request_->client_.complain("a stream ended without done");
      sink->ended_ = true;
      sink->request_->on_stream_end(status);
    });
  }
  void detach() { request_ = nullptr; }

  std::weak_ptr<Sink> self_;

 private:
  SimRequest* request_;
  SimClock& clock_;
  bool done_ = false;
  bool ended_ = false;
};

SimRequest::SimRequest(Client& client, std::shared_ptr<const catalog::Model> model,
                       SteadyTime deadline, residency::RequestClass request_class, Random random,
                       std::shared_ptr<const residency::RequestEntry> entry)
    : client_(client),
      model_(std::move(model)),
      since_(client.clock.now()),
      deadline_(request_class == residency::RequestClass::kOperator
                    ? deadline
                    : std::max(std::min(deadline, client.clock.now() + client.queue_timeout),
                               client.clock.now())),
      request_class_(request_class),
      random_(random),
      entry_(std::move(entry)) {}

SimRequest::~SimRequest() {
  if (sink_) sink_->detach();
}

void SimRequest::begin() {
  claim_ = client_.residency.acquire(model_, request_class_, deadline_, *this);
  if (answered_) client_.complain("an answer from within acquire()");
}

void SimRequest::hang_up() {
  if (state_ == State::kDone) return;
  finish();
}

void SimRequest::release() {
  if (state_ == State::kHolding) finish();
}

std::string SimRequest::held_instance() const {
  return lease_ ? lease_.instance_id() : "";
}

void SimRequest::check() {
  if (state_ == State::kWaiting && client_.clock.now() > deadline_) {
    client_.complain("a request for " + model() + " waits past its deadline");
  }
  if (state_ == State::kExplaining && client_.clock.now() > asked_why_ + kBreakWait) {
    client_.complain("explain_break() did not answer within its second");
  }
}

void SimRequest::answered() {
  if (answered_) client_.complain("a second answer for one claim");
  if (state_ == State::kDone) client_.complain("an answer for a claim that was dropped");
  if (client_.clock.now() > deadline_) client_.complain("an answer past its deadline");
  answered_ = true;
}

void SimRequest::on_claim_progress(const residency::ClaimProgress& progress) {
  if (answered_ || state_ != State::kWaiting) {
    client_.complain("progress of a claim that is over");
    return;
  }
  if (progress.fraction < 0 || progress.fraction > 1) client_.complain("a fraction beyond 0 to 1");
  if (progress.queue_position && *progress.queue_position == 0) {
    client_.complain("a queue position of 0");
  }
  // Clients go before idle work, and those of another tenant may, whenever they come.
  if (client_.one_tenant && request_class_ != residency::RequestClass::kIdle &&
      progress.queue_position && last_position_ && *progress.queue_position > *last_position_) {
    client_.complain("a request went back in its queue");
  }
  last_position_ = progress.queue_position;
  client_.reached(progress.queue_position ? "position" : "phase " + progress.phase);
  if (!progress.waits_for.empty()) client_.reached("waits for " + progress.waits_for);
  if (!client_.calm && random_.percent(3)) finish();
}

void SimRequest::on_lease(residency::Lease lease) {
  answered();
  client_.reached("answer lease");
  if (random_.percent(50)) claim_.reset();
  lease_ = std::move(lease);
  state_ = State::kHolding;
  client_.served(*this);
  if (client_.calm) return finish();
  const std::uint64_t plan = random_.below(10);
  if (plan < 2) {
    const std::shared_ptr<const catalog::Model> model = model_;
    finish();
    client_.retry(model);
  } else if (plan < 7) {
    stream();
  }
}

void SimRequest::on_claim_failed(Error error) {
  answered();
  client_.reached("answer " + std::string(reason_info(error.reason).name));
  if (error.message.empty()) client_.complain("an error without a message");
  const bool load_failed = error.reason == Reason::kLoadFailed;
  const bool no_memory =
      error.reason == Reason::kInsufficientMemory || error.reason == Reason::kNoRoom;
  if (no_memory &&
      (!error.extras || !error.extras->memory || error.extras->memory->needed_bytes == 0 ||
       (error.reason == Reason::kNoRoom && !error.extras->retry_after_seconds))) {
    client_.complain("a refusal without its numbers");
  }
  if (load_failed &&
      (!error.extras || !error.extras->failure || error.extras->failure->failure_class.empty())) {
    client_.complain("kLoadFailed without its evidence");
  }
  switch (error.reason) {
    case Reason::kLoadFailed:
    case Reason::kQueueFull:
    case Reason::kDeadline:
    case Reason::kShuttingDown:
    case Reason::kConflict:
    case Reason::kInsufficientMemory:
    case Reason::kNoRoom:
      break;
    default:
      client_.complain("a claim failed with " + std::string(reason_info(error.reason).name));
  }
  turned_away_ = error.reason == Reason::kQueueFull || client_.clock.now() == since_;
  const std::shared_ptr<const catalog::Model> model = model_;
  finish();
  if (!client_.calm && load_failed && random_.percent(30)) client_.retry(model);
}

void SimRequest::stream() {
  state_ = State::kStreaming;
  sink_ = std::make_shared<Sink>(*this, client_.clock);
  sink_->self_ = sink_;
  core::GenerateRequest request;
  request.model = model();
  call_ = lease_.worker().generate(request, client_.clock.now() + std::chrono::seconds(30), sink_);
}

void SimRequest::on_stream_end(const Status& status) {
  if (state_ != State::kStreaming) return;
  if (status || status.error().reason != Reason::kWorkerDied) return finish();
  state_ = State::kExplaining;
  asked_why_ = client_.clock.now();
  client_.residency.explain_break(
      lease_.instance_id(), [this, alive = std::weak_ptr<Sink>(sink_)](const Error& error) {
        const auto sink = alive.lock();
        if (!sink || state_ != State::kExplaining) return;
        if (client_.clock.now() > asked_why_ + kBreakWait) {
          client_.complain("explain_break() answered late");
        }
        client_.reached("break " + std::string(reason_info(error.reason).name));
        if (error.reason != Reason::kWorkerDied && error.reason != Reason::kShuttingDown &&
            error.reason != Reason::kConflict && error.reason != Reason::kDraining) {
          client_.complain("explain_break() said " + std::string(reason_info(error.reason).name));
        }
        finish();
      });
}

void SimRequest::finish() {
  client_.leaves(*this);
  state_ = State::kDone;
  claim_.reset();
  call_.reset();
  if (sink_) sink_->detach();
  lease_ = {};
}

}  // namespace berth::sim
