#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/waiting_bytes.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/services.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::gateway {

// The way of one request that needs a worker: catalogue, residency, worker, end, whatever it asks
// of the worker. Keeps itself alive until its client has got the last word, or cancel() has taken
// effect. The core strand sees it when it begins, when its claim changes and when it ends; what the
// worker says goes straight from the call to the client.
//
// A derived class says what is asked for and how the client is told. Its client's calls never
// overlap: they come from the core strand until it is sent, then from the call's thread until it
// has called end(), then from the core strand again. A large request is sent on the pool, as its
// conversion would keep the core strand.
class WorkerRequest : public residency::ClaimObserver,
                      public std::enable_shared_from_this<WorkerRequest> {
 public:
  // The client went away: all work for it ends, and it is told nothing more once this has taken
  // effect on the core strand. Any thread, any number of times.
  void cancel();
  // Ends it for another reason, which its client is told. Nothing where it is over. Any thread.
  void abort(Error why);
  // The client has room again for what the call brings. Any thread.
  void resume();

  // For residency.
  [[nodiscard]] const residency::RequestEntry* claimant() const final { return line_.get(); }
  void on_claim_progress(const residency::ClaimProgress& progress) final;
  void on_lease(residency::Lease lease) final;
  void on_claim_failed(Error error) final;

 protected:
  struct Asked {
    core::Caller caller;
    std::string id;
    std::string model;        // as the client said it; may be an alias
    SteadyTime deadline;      // when it must have ended
    std::uint64_t bytes = 0;  // that it keeps in memory until send()
  };
  // Where the time until it was sent went, microseconds.
  struct Waited {
    std::uint64_t queue_us = 0;
    std::uint64_t load_us = 0;
  };
  // What the record of an answer tells.
  struct Served {
    std::string finish_reason;
    std::uint32_t prompt_tokens = 0;
    std::uint32_t completion_tokens = 0;
    std::uint32_t cached_tokens = 0;  // of the prompt's
  };

  // About 0.5 ms of the core strand.
  static constexpr std::uint64_t kLargeRequest = 256U << 10U;

  WorkerRequest(const residency::Services& services, Asked asked);

  // Lets it begin: once, from whatever made it. The client is told later, never from within.
  static void launch(const std::shared_ptr<WorkerRequest>& request);

  // --- What a derived class says, on the core strand.
  // Whether that model can serve such a request, as far as can be known before it is loaded.
  [[nodiscard]] virtual Status fits(const catalog::Model& model) const;
  // It is taken on, under the catalogue's name of the model; once, before everything else.
  virtual void on_accepted(const std::string& model) = 0;
  virtual void on_waiting(const residency::ClaimProgress& progress) = 0;
  // Whether send() turns what was asked into another form, which takes the longer the more it is.
  [[nodiscard]] virtual bool converts() const { return true; }
  // Sends it, and keeps nothing of what it sends. Whatever the call's end is told to calls end().
  // Once; on the pool where kLargeRequest bytes or more have to be converted.
  virtual std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, SteadyTime deadline) = 0;
  // Of an answer that was complete.
  [[nodiscard]] virtual Served served() const = 0;
  // The last word, where there is no answer.
  virtual void on_failed(const Error& error) = 0;

  // --- What it may ask.
  // The call ended, well: after the client has got its answer, which nothing else has to be waited
  // for, unless cancelled(); or badly: then on_failed() follows. Any thread; once.
  void end(Status status);
  // The same after an answer that was a refusal, which the client has got: only the record says why
  // it failed. Any thread; in the place of end().
  void end_refused(Error why);
  [[nodiscard]] bool cancelled() const { return cancelled_; }
  [[nodiscard]] const residency::Services& services() const { return services_; }
  [[nodiscard]] const core::Caller& caller() const { return asked_.caller; }
  // From on_accepted() on.
  [[nodiscard]] const std::string& model() const { return asked_.model; }
  // Its line in the book of requests, from on_accepted() on.
  [[nodiscard]] residency::RequestEntry& line() { return *line_; }
  // From send() on.
  [[nodiscard]] const std::string& instance_id() const { return instance_id_; }
  [[nodiscard]] const Waited& waited() const { return waited_; }

 private:
  // On the core strand.
  void begin();
  void cancel_now();
  void abort_now(const Error& why);
  // An admin, or another client of its tenant, ended it by its id.
  void end_by_hand();
  void end_badly(const Error& error);
  // Nothing more will happen: lets go of the lease and of itself.
  void close();
  [[nodiscard]] std::shared_ptr<rpc::WorkerCall> call();
  // On the pool.
  void send_large(rpc::WorkerClient& worker);
  void on_sent();
  // Whether it has a place, but was not begun to be sent; then it is not any more.
  bool withdraw();
  // Any thread; once.
  void keep_call(const std::shared_ptr<rpc::WorkerCall>& call);

  // Its life, as it is recorded: everything that keeps books of requests is told here. Core strand.
  void note_admitted(Duration waited);
  void note_finished();
  void note_failed(const Error& error);
  void note_cancelled();
  // The client is told, too: it failed after, or was refused before, its worker was there.
  void fail_finally(const Error& error);
  void refuse(const Error& error);

  const residency::Services services_;
  Asked asked_;
  const SteadyTime arrived_;

  // Made on the core strand before the client hears anything.
  std::shared_ptr<residency::RequestEntry> line_;

  // Core strand.
  core::HeldBytes held_;  // until it is sent
  std::unique_ptr<residency::Claim> claim_;
  Timer deadline_timer_;            // while it runs on a worker
  std::optional<Error> ended_for_;  // why we end the call
  residency::Lease lease_;
  bool by_hand_ = false;  // end_by_hand() was called
  bool sending_ = false;  // on the pool, which needs the lease
  bool over_ = false;

  // Set on the core strand before the call starts, then read by its thread.
  Waited waited_;
  std::string instance_id_;

  std::atomic<bool> cancelled_{false};

  // The call may run, fill the client and drain again before on_lease() has stored it.
  std::mutex call_mutex_;
  std::shared_ptr<rpc::WorkerCall> call_;
  bool resume_wanted_ = false;
  bool send_begun_ = false;  // on the pool
  bool withdrawn_ = false;   // before that

  std::shared_ptr<WorkerRequest> self_;  // from begin() until over_; core strand
};

}  // namespace berth::gateway
