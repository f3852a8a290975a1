#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "common/result.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

// The calls that run on one instance, so that they can be ended together, whoever started
// them (L3: a stop begins with the cancelling of what is in flight). Any thread; the one mutex
// guards the table alone and is never held across a call. Lives as long as one of its calls.
class InFlight : public std::enable_shared_from_this<InFlight> {
 public:
  InFlight() = default;
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() = default;

  // Starts a generation on `client`. Once revoked, it ends at once with kWorkerDied.
  std::unique_ptr<rpc::GenerateCall> generate(rpc::WorkerClient& client,
                                              const core::GenerateRequest& request,
                                              SteadyTime deadline,
                                              std::shared_ptr<rpc::GenerateSink> sink);

  // The same of a request that is passed on.
  std::unique_ptr<rpc::WorkerCall> forward(rpc::WorkerClient& client, rpc::ForwardRequest request,
                                           SteadyTime deadline,
                                           std::shared_ptr<rpc::ForwardSink> sink);
  // The same of a call with one answer. `start` gets what its answer must be given to, and returns
  // the call.
  template <typename Answer, typename Start>
  std::unique_ptr<rpc::WorkerCall> ask(rpc::OnAnswer<Answer> done, const Start& start) {
    const std::shared_ptr<InFlight> self = shared_from_this();
    return list(start([self, done = std::move(done)](Result<Answer> answer) {
      if (!answer && self->revoked()) answer = fail(stopped());
      done(std::move(answer));
    }));
  }

  // Cancels all that runs and all that will be started; each ends with kWorkerDied.
  void revoke();
  [[nodiscard]] bool revoked() const;

 private:
  class Call;
  class Sink;
  class Forwarded;

  // What the caller gets of a call that was started: cancelled at once where this is revoked.
  std::unique_ptr<rpc::WorkerCall> list(std::shared_ptr<rpc::WorkerCall> call);
  static Error stopped();
  void forget(std::uint64_t key);

  mutable std::mutex mutex_;
  bool revoked_ = false;
  std::uint64_t next_key_ = 1;
  std::unordered_map<std::uint64_t, std::weak_ptr<rpc::WorkerCall>> calls_;
};

}  // namespace berth::residency
