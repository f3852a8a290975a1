#pragma once

#include <memory>
#include <string>

#include "supervisor/residency/in_flight.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::residency {

// The connection to one worker, shared by its instance and the leases on it: it is there until the
// last of them has gone. Passes what the worker says on to the instance as long as that lives.
// Made and destroyed on the core strand; calls are started on any thread.
class WorkerHandle : public rpc::WorkerClient, private rpc::WorkerObserver {
 public:
  static std::shared_ptr<WorkerHandle> connect(rpc::WorkerConnector& connector,
                                               const std::string& socket,
                                               const std::string& instance_id,
                                               std::weak_ptr<rpc::WorkerObserver> instance);
  WorkerHandle(const WorkerHandle&) = delete;
  WorkerHandle& operator=(const WorkerHandle&) = delete;
  ~WorkerHandle() override = default;

  std::unique_ptr<rpc::GenerateCall> generate(const core::GenerateRequest& request,
                                              SteadyTime deadline,
                                              std::shared_ptr<rpc::GenerateSink> sink) override;
  std::unique_ptr<rpc::WorkerCall> embed(const core::EmbedRequest& request, SteadyTime deadline,
                                         rpc::OnAnswer<core::Embeddings> done) override;
  std::unique_ptr<rpc::WorkerCall> tokenize(const core::TokenizeRequest& request,
                                            SteadyTime deadline,
                                            rpc::OnAnswer<core::Tokens> done) override;
  std::unique_ptr<rpc::WorkerCall> count_tokens(const core::TokenizeRequest& request,
                                                SteadyTime deadline,
                                                rpc::OnAnswer<core::TokenCount> done) override;
  std::unique_ptr<rpc::WorkerCall> detokenize(const core::DetokenizeRequest& request,
                                              SteadyTime deadline,
                                              rpc::OnAnswer<core::DetokenizedText> done) override;
  std::unique_ptr<rpc::WorkerCall> forward(rpc::ForwardRequest request, SteadyTime deadline,
                                           std::shared_ptr<rpc::ForwardSink> sink) override;
  void cancel_load() override;
  void set_threads(std::uint32_t threads) override;

  // Ends all that runs on the worker; each ends with kWorkerDied.
  void revoke();

 private:
  explicit WorkerHandle(std::weak_ptr<rpc::WorkerObserver> instance);

  void on_progress(const rpc::WorkerProgress& progress) override;
  void on_own_request() override;
  void on_probe(std::string_view saw) override;
  void on_ready(const rpc::WorkerReady& ready) override;
  void on_load_failed(const rpc::WorkerLoadFailed& failed) override;
  void on_heartbeat(const rpc::WorkerHeartbeat& heartbeat) override;
  void on_disconnected() override;

  const std::weak_ptr<rpc::WorkerObserver> instance_;
  const std::shared_ptr<InFlight> in_flight_;
  std::unique_ptr<rpc::WorkerClient> client_;
};

}  // namespace berth::residency
