#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/generation.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::gateway {

// What a finished answer is worth beside its text.
struct Finished {
  core::DoneEvent done;
  std::string instance_id;
  std::string model;
};

// The client's side of one request, whatever protocol it speaks. Calls come from the core strand
// and from threads of the RPC layer, but never overlap. None may block.
class Responder {
 public:
  Responder() = default;
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  virtual ~Responder() = default;

  // The model's catalogue name; once, first, unless the request is refused before.
  virtual void on_accepted(const std::string& model) = 0;
  virtual void on_waiting(const residency::ClaimProgress& progress) = 0;
  // Returns whether it has room for one more; false pauses until Generation::resume().
  virtual bool on_prefill(const core::PrefillEvent& prefill) = 0;
  virtual bool on_token(core::TokenEvent token) = 0;
  // Exactly one of these two, last.
  virtual void on_finished(const Finished& finished) = 0;
  virtual void on_failed(const Error& error) = 0;
};

// The way of one generation through the supervisor: catalogue, residency, worker, answer. Keeps
// itself alive until the responder has got its last call, or cancel() has taken effect. The core
// strand sees it when it begins, when its claim changes and when it ends; tokens go straight from
// the worker's stream to the responder.
class Generation : public residency::ClaimObserver,
                   public rpc::GenerateSink,
                   public std::enable_shared_from_this<Generation> {
 public:
  // Starts. `request.model` may be an alias; the request has been validated. `deadline`: when it
  // must have ended. Any thread; the responder is called later, never from within.
  static std::shared_ptr<Generation> start(const residency::Services& services, core::Caller caller,
                                           core::GenerateRequest request, SteadyTime deadline,
                                           std::shared_ptr<Responder> responder);

  // The client went away: all work for it ends; no more calls of the responder once this has taken
  // effect on the core strand. Any thread, any number of times.
  void cancel();
  // The responder has room again. Any thread.
  void resume();

  // For residency and rpc.
  void on_claim_progress(const residency::ClaimProgress& progress) override;
  void on_lease(residency::Lease lease) override;
  void on_claim_failed(Error error) override;
  bool on_event(core::GenerateEvent event) override;
  void on_end(Status status) override;

 private:
  Generation(const residency::Services& services, core::Caller caller,
             core::GenerateRequest request, SteadyTime deadline,
             std::shared_ptr<Responder> responder);

  // On the core strand.
  void begin();
  void refuse(const Error& error);
  void end_well();
  void end_badly(const Error& error);
  void cancel_now();
  void fail_finally(const Error& error);
  // Nothing more will happen: lets go of the lease and of itself.
  void close();
  [[nodiscard]] std::shared_ptr<rpc::GenerateCall> call();

  const residency::Services services_;
  const core::Caller caller_;
  core::GenerateRequest request_;
  const SteadyTime deadline_;
  const std::shared_ptr<Responder> responder_;
  const SteadyTime arrived_;

  // Core strand.
  std::unique_ptr<residency::Claim> claim_;
  Timer deadline_timer_;  // while it runs on a worker
  bool deadline_passed_ = false;
  residency::Lease lease_;
  bool over_ = false;

  // Set on the core strand before the worker's stream starts, then read by its thread.
  std::uint64_t waited_us_ = 0;
  std::uint64_t load_us_ = 0;
  bool saw_load_ = false;
  std::string instance_id_;

  std::optional<core::DoneEvent> done_;  // the stream's thread, then the core strand
  std::atomic<bool> cancelled_{false};

  // The stream may run, fill the responder and drain again before on_lease() has stored the call.
  std::mutex call_mutex_;
  std::shared_ptr<rpc::GenerateCall> call_;
  bool resume_wanted_ = false;

  std::shared_ptr<Generation> self_;  // from begin() until over_; core strand
};

}  // namespace berth::gateway
