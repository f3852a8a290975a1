#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

// The generations that run on one instance, so that they can be ended together, whoever started
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

  // Cancels all that runs and all that will be started; each ends with kWorkerDied.
  void revoke();
  [[nodiscard]] bool revoked() const;

 private:
  class Call;
  class Sink;

  void forget(std::uint64_t key);

  mutable std::mutex mutex_;
  bool revoked_ = false;
  std::uint64_t next_key_ = 1;
  std::unordered_map<std::uint64_t, std::weak_ptr<rpc::GenerateCall>> calls_;
};

}  // namespace berth::residency
