#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "berth/v1/admin.pb.h"
#include "common/clock.h"
#include "common/result.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/ledger/failure_record.h"
#include "supervisor/residency/residency.h"

namespace berth::admin {

struct LoadAsk {
  std::string model;   // or an alias
  bool retry = false;  // lifts first by hand what stands against the model, and tells it
  bool wait = true;    // until it is ready or failed; else until the load has begun
  SteadyTime deadline{};
  core::Caller caller;
};

// Whom a load tells. Core strand.
class LoadListener {
 public:
  LoadListener() = default;
  LoadListener(const LoadListener&) = delete;
  LoadListener& operator=(const LoadListener&) = delete;
  virtual ~LoadListener() = default;

  virtual void on_load_lifted(const core::FailureRecord& record) = 0;
  virtual void on_load_progress(const residency::ClaimProgress& progress) = 0;
  // Exactly one of these two, last. The instance is absent where it has not got as far.
  virtual void on_load_done(const std::optional<v1::Instance>& instance) = 0;
  virtual void on_load_failed(const Error& error) = 0;
};

// An admin's load of a model, whatever protocol it came by: a claim that wants the model ready and
// then lets it go. Keeps itself and its listener alive until the listener has got its last call, or
// stop() has taken effect. Errors: kPermissionDenied, kUnknownModel and those of acquire().
class LoadOperation : public residency::ClaimObserver,
                      public std::enable_shared_from_this<LoadOperation> {
 public:
  // Any thread. The listener is never called from within.
  static std::shared_ptr<LoadOperation> start(ServerState& state, LoadAsk ask,
                                              std::shared_ptr<LoadListener> listener);

  // Nobody wants to know any more; the load itself goes on (L5). Any thread.
  void stop();

  void on_claim_progress(const residency::ClaimProgress& progress) override;
  void on_lease(residency::Lease lease) override;
  void on_claim_failed(Error error) override;

 private:
  LoadOperation(ServerState& state, LoadAsk ask, std::shared_ptr<LoadListener> listener);

  void begin();
  // Lifts what stands against a model that is gone; what the caller is told.
  Error retry_of_gone(const Error& unknown);
  void done();
  void fail_with(const Error& error);
  void drop();

  ServerState& state_;
  const LoadAsk ask_;
  std::shared_ptr<LoadListener> listener_;  // until the last call
  std::string model_;
  std::unique_ptr<residency::Claim> claim_;
  std::shared_ptr<LoadOperation> self_;  // while there is a claim
};

// Ends the model's instance, for an admin; as Residency::unload. Any thread; `done` on the core
// strand. Errors: also kPermissionDenied and kUnknownModel.
void unload_model(ServerState& state, std::string model, bool force, const core::Caller& caller,
                  std::function<void(Result<v1::UnloadModelResponse>)> done);

// Ends the requests of that id that wait or run: a client's only where they are of his tenant. Any
// thread; `done` on the core strand. Errors: kNotFound.
void cancel_request(ServerState& state, std::string id, core::Caller caller,
                    std::function<void(Status)> done);

}  // namespace berth::admin
