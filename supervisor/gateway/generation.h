#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/generation.h"
#include "supervisor/gateway/worker_request.h"
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

// The way of one generation through the supervisor. Tokens go straight from the worker's stream to
// the responder.
class Generation : public WorkerRequest, public rpc::GenerateSink {
 public:
  // Starts. `request.model` may be an alias; the request has been validated. `deadline`: when it
  // must have ended. Any thread; the responder is called later, never from within. After cancel()
  // it is not called any more; after resume() it gets more.
  static std::shared_ptr<Generation> start(const residency::Services& services, core::Caller caller,
                                           core::GenerateRequest request, SteadyTime deadline,
                                           std::shared_ptr<Responder> responder);

  // For rpc.
  bool on_event(core::GenerateEvent event) override;
  void on_end(Status status) override;

 private:
  Generation(const residency::Services& services, core::Caller caller,
             core::GenerateRequest request, SteadyTime deadline,
             std::shared_ptr<Responder> responder);

  void on_accepted(const std::string& model) override;
  void on_waiting(const residency::ClaimProgress& progress) override;
  std::unique_ptr<rpc::WorkerCall> send(rpc::WorkerClient& worker, SteadyTime deadline) override;
  [[nodiscard]] Served served() const override;
  void on_failed(const Error& error) override;
  [[nodiscard]] std::shared_ptr<Generation> shared();

  core::GenerateRequest request_;  // until it is sent
  const std::shared_ptr<Responder> responder_;
  std::optional<core::DoneEvent> done_;  // the stream's thread, then the core strand
};

}  // namespace berth::gateway
