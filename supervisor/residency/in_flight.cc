#include "supervisor/residency/in_flight.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

// What the caller holds: the call, listed until it is dropped.
class InFlight::Call : public rpc::WorkerCall {
 public:
  Call(std::shared_ptr<InFlight> list, std::uint64_t key, std::shared_ptr<rpc::WorkerCall> call)
      : list_(std::move(list)), key_(key), call_(std::move(call)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() override { list_->forget(key_); }

  void cancel() override { call_->cancel(); }
  void resume() override { call_->resume(); }

 private:
  const std::shared_ptr<InFlight> list_;
  const std::uint64_t key_;
  const std::shared_ptr<rpc::WorkerCall> call_;
};

// Says kWorkerDied where we ended the call: whatever the RPC layer calls a cancelled call, the
// cause is not in it.
class InFlight::Sink : public rpc::GenerateSink {
 public:
  Sink(std::shared_ptr<InFlight> list, std::shared_ptr<rpc::GenerateSink> sink)
      : list_(std::move(list)), sink_(std::move(sink)) {}

  bool on_event(core::GenerateEvent event) override { return sink_->on_event(std::move(event)); }
  void on_end(Status status) override {
    if (!status && list_->revoked()) status = fail(stopped());
    sink_->on_end(std::move(status));
  }

 private:
  const std::shared_ptr<InFlight> list_;
  const std::shared_ptr<rpc::GenerateSink> sink_;
};

// The same for a request that is passed on.
class InFlight::Forwarded : public rpc::ForwardSink {
 public:
  Forwarded(std::shared_ptr<InFlight> list, std::shared_ptr<rpc::ForwardSink> sink)
      : list_(std::move(list)), sink_(std::move(sink)) {}

  void on_head(rpc::ForwardHead head) override { sink_->on_head(std::move(head)); }
  bool on_piece(std::string piece) override { return sink_->on_piece(std::move(piece)); }
  [[nodiscard]] bool complete() const override { return sink_->complete(); }
  void on_end(Status status) override {
    if (!status && list_->revoked()) status = fail(stopped());
    sink_->on_end(std::move(status));
  }

 private:
  const std::shared_ptr<InFlight> list_;
  const std::shared_ptr<rpc::ForwardSink> sink_;
};

std::unique_ptr<rpc::GenerateCall> InFlight::generate(rpc::WorkerClient& client,
                                                      const core::GenerateRequest& request,
                                                      SteadyTime deadline,
                                                      std::shared_ptr<rpc::GenerateSink> sink) {
  return list(client.generate(request, deadline,
                              std::make_shared<Sink>(shared_from_this(), std::move(sink))));
}

std::unique_ptr<rpc::WorkerCall> InFlight::forward(rpc::WorkerClient& client,
                                                   rpc::ForwardRequest request, SteadyTime deadline,
                                                   std::shared_ptr<rpc::ForwardSink> sink) {
  return list(client.forward(std::move(request), deadline,
                             std::make_shared<Forwarded>(shared_from_this(), std::move(sink))));
}

std::unique_ptr<rpc::WorkerCall> InFlight::list(std::shared_ptr<rpc::WorkerCall> call) {
  std::uint64_t key = 0;
  bool cancel = false;
  {
    const std::lock_guard lock(mutex_);
    key = next_key_++;
    calls_.emplace(key, call);
    cancel = revoked_;
  }
  if (cancel) call->cancel();
  return std::make_unique<Call>(shared_from_this(), key, std::move(call));
}

Error InFlight::stopped() {
  return {Reason::kWorkerDied, "The worker was stopped."};
}

void InFlight::revoke() {
  std::vector<std::shared_ptr<rpc::WorkerCall>> calls;
  {
    const std::lock_guard lock(mutex_);
    revoked_ = true;
    for (const auto& [key, weak] : calls_) {
      if (std::shared_ptr<rpc::WorkerCall> call = weak.lock()) calls.push_back(std::move(call));
    }
  }
  for (const auto& call : calls) call->cancel();
}

bool InFlight::revoked() const {
  const std::lock_guard lock(mutex_);
  return revoked_;
}

void InFlight::forget(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  calls_.erase(key);
}

}  // namespace berth::residency
