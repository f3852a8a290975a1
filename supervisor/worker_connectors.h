#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "common/clock.h"
#include "common/event.h"
#include "supervisor/command_runs.h"
#include "supervisor/process/async.h"
#include "supervisor/rpc/worker_client.h"

namespace berth {

// Connects to workers of every kind: to a command by HTTP, to the others as `workers` does. Core
// strand only, which runs `io`; everything that is given outlives the clients.
class WorkerConnectors : public rpc::WorkerConnector {
 public:
  struct Parts {
    Clock& clock;
    EventSink& events;
    boost::asio::io_context& io;
    process::RunBlocking run_blocking;
    // Looks who answers at an address, which every request waits for: on a thread of its own, so
    // that nothing that a client causes, nor a file system, keeps others' requests.
    process::RunBlocking run_look;
    const CommandRuns& runs;
    rpc::WorkerConnector& workers;
  };

  explicit WorkerConnectors(Parts parts) : parts_(std::move(parts)) {}

  std::unique_ptr<rpc::WorkerClient> connect(const std::string& socket_path,
                                             const std::string& instance_id,
                                             rpc::WorkerObserver& observer) override;

 private:
  Parts parts_;
};

}  // namespace berth
