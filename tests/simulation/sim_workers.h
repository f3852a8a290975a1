#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/process/launcher.h"
#include "supervisor/residency/residency.h"
#include "supervisor/residency/tree_sampler.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/worker_script.h"

namespace berth::sim {

// The simulated machine's processes: launcher, connector, and what else a launch needs. Simulation
// thread; outlives what it started.
class SimWorkers : public process::Launcher, public rpc::WorkerConnector {
 public:
  explicit SimWorkers(SimClock& clock) : clock_(clock) {}

  // Asked once per instance, when its launch is prepared. Default: a worker that serves.
  void set_script(std::function<WorkerScript(const std::string& model)> script) {
    script_ = std::move(script);
  }

  Result<std::unique_ptr<process::ChildProcess>> launch(process::LaunchSpec spec,
                                                        process::ChildObserver& observer) override;
  std::unique_ptr<rpc::WorkerClient> connect(const std::string& socket_path,
                                             const std::string& instance_id,
                                             rpc::WorkerObserver& observer) override;
  // As Environment::prepare_launch, ::oom_killed and ::log_tail.
  void prepare_launch(const std::shared_ptr<const catalog::Model>& model, const Uuid& instance,
                      std::function<void(Result<residency::PreparedLaunch>)> done);
  void oom_killed(pid_t pid, std::function<void(bool)> done);
  void log_tail(const std::string& model, const Uuid& instance,
                std::function<void(std::vector<std::string>)> done);

  // As Environment::watch_tree.
  std::unique_ptr<residency::TreeSampler> watch_tree(pid_t pid);

  // Every worker that was ever started, by start.
  [[nodiscard]] const std::vector<std::shared_ptr<SimWorker>>& all() const { return workers_; }
  // Those whose exit has not been delivered.
  [[nodiscard]] std::vector<std::shared_ptr<SimWorker>> present() const;
  // The newest one of a model; null where there is none.
  [[nodiscard]] std::shared_ptr<SimWorker> newest(const std::string& model) const;
  [[nodiscard]] std::shared_ptr<SimWorker> by_instance(const std::string& instance) const;

 private:
  class Child;
  class Client;
  class Sampler;

  SimClock& clock_;
  std::function<WorkerScript(const std::string&)> script_;
  std::map<std::string, WorkerScript> scripts_;  // by instance
  std::vector<std::shared_ptr<SimWorker>> workers_;
  pid_t next_pid_ = 1000;
};

}  // namespace berth::sim
