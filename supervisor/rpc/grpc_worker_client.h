#pragma once

#include <memory>
#include <string>

#include "common/clock.h"
#include "supervisor/rpc/worker_client.h"

namespace berth::rpc {

// The real WorkerConnector: one gRPC channel per worker, on its Unix socket. Callbacks of the
// control stream are posted to the core strand through the clock, which must outlive everything
// made here.
class GrpcWorkerConnector : public WorkerConnector {
 public:
  explicit GrpcWorkerConnector(Clock& clock);

  std::unique_ptr<WorkerClient> connect(const std::string& socket_path,
                                        const std::string& instance_id,
                                        WorkerObserver& observer) override;

 private:
  Clock& clock_;
};

}  // namespace berth::rpc
