#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/own_environment.h"
#include "common/result.h"
#include "common/sd_notify.h"
#include "common/uuid.h"
#include "supervisor/admin/caller_watch.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/admin/metrics.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/catalog/config.h"
#include "supervisor/catalog_keeper.h"
#include "supervisor/command_runs.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/daemon_ground.h"
#include "supervisor/device_drivers.h"
#include "supervisor/early_log.h"
#include "supervisor/fd_wait.h"
#include "supervisor/fronts.h"
#include "supervisor/key_keeper.h"
#include "supervisor/known_architectures.h"
#include "supervisor/launch_preparer.h"
#include "supervisor/leftover_cleaner.h"
#include "supervisor/loop_monitor.h"
#include "supervisor/machine_memory.h"
#include "supervisor/measured_loads.h"
#include "supervisor/memory/oom_kill.h"
#include "supervisor/model_check.h"
#include "supervisor/model_need.h"
#include "supervisor/options.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/async.h"
#include "supervisor/process/file_log_watcher.h"
#include "supervisor/process/leftovers.h"
#include "supervisor/process/process_launcher.h"
#include "supervisor/process/subreaper.h"
#include "supervisor/process/worker_cgroup.h"
#include "supervisor/program_watch.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "supervisor/rpc/grpc_worker_client.h"
#include "supervisor/store/sqlite_store.h"
#include "supervisor/unplaced_models.h"
#include "supervisor/worker_connectors.h"

namespace berth {

// What gRPC's threads may still post to when everything else has ended, so it is never destroyed.
struct CoreStrand {
  boost::asio::io_context io{1};
  process::AsioClock clock{io};
};
CoreStrand& core_strand();

// The program: owns every part, starts them in the order of the layers and stops them in reverse.
// Everything runs on the core strand unless it says otherwise.
class Daemon {
 public:
  Daemon(const DaemonOptions& options, catalog::Config config)
      : options_(options), config_(std::make_shared<const catalog::Config>(std::move(config))) {}
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  int run();

 private:
  static constexpr std::size_t kPoolThreads = 2;

  // What may block and can only fail for good reasons, before the loop runs (daemon.cc).
  Status prepare();
  Status open_outlets();

  // The parts, each with what it needs of the others (daemon_wiring.cc).
  Status build_core();
  void take_cgroup();
  void on_cgroup_problem(const std::string& problem);
  void build_launches();
  void build_catalog();
  void build_cleaner();
  void build_memory();
  void build_residency();
  core::Provenance provenance_of(const catalog::Model& model);
  residency::MemoryAccess memory_access();
  void look_for_devices();
  std::function<void(Result<residency::PreparedLaunch>)> noting_kernel_log(
      std::function<void(Result<residency::PreparedLaunch>)> done);
  std::vector<process::MarkedLeftover> kill_marked();

  // From the loop's beginning until it listens (daemon_start.cc).
  void begin();
  void on_part_known();
  void listen();
  residency::Services services();

  // While it serves (daemon_life.cc).
  void on_signal(int signal);
  void reload();
  void take_config(catalog::ConfigResult read);
  void tick();
  void show_status();
  std::vector<std::string> degraded();
  [[nodiscard]] std::string ignored_keys() const;

  // The end (L29).
  void stop(const std::string& cause);
  void end_fronts();
  // After the loop (daemon.cc).
  void close();

  const DaemonOptions options_;
  std::shared_ptr<const catalog::Config> config_;  // another one after a reload

  boost::asio::io_context& io_ = core_strand().io;
  process::AsioClock& clock_ = core_strand().clock;
  boost::asio::thread_pool pool_{kPoolThreads};
  boost::asio::thread_pool look_pool_{1};  // looks at who answers for a program
  const process::RunBlocking run_blocking_ = [this](std::function<void()> work) {
    boost::asio::post(pool_, std::move(work));
  };
  // Detached, as nobody can end a thread that a file system holds.
  const process::RunBlocking run_alone_ = [this](std::function<void()> work) {
    try {
      std::thread(work).detach();
    } catch (const std::system_error&) {  // no thread can be had
      run_blocking_(std::move(work));
    }
  };
  boost::asio::signal_set signals_{io_, SIGTERM, SIGINT, SIGHUP};
  SystemIdSource ids_;

  const std::vector<std::string> environment_ = own_environment();
  std::optional<DaemonGround> ground_;
  std::unique_ptr<LogWriter> log_;
  std::optional<EarlyLog> early_log_;
  std::unique_ptr<store::RealStore> store_;
  std::optional<admin::Metrics> metrics_;
  std::unique_ptr<admin::EventHub> events_;
  std::unique_ptr<process::WorkerCgroups> cgroups_;  // null: there are none
  std::string cgroup_;                               // that was delegated; empty: none
  std::string cgroup_problem_;                       // why, where there should be; empty: none
  std::optional<process::RealLauncher> launcher_;
  memory::KernelLogPlaces kernel_log_{[this](pid_t pid) { return launcher_->owns(pid); }};
  std::unique_ptr<process::Subreaper> subreaper_;
  rpc::GrpcWorkerConnector connector_{clock_};
  CommandRuns commands_;
  std::optional<WorkerConnectors> connectors_;
  process::FileLogWatcher log_watcher_{
      {.clock = clock_,
       .run_blocking = run_blocking_,
       .on_readable = readable_on(io_),
       .on_cut =
           [this](const std::string& model, std::uint64_t size_before) {
             if (preparer_) preparer_->tell_cut(model, size_before);
           },
       .on_uncut =
           [this](const std::string& model, const std::string& problem) {
             if (preparer_) preparer_->tell_uncut(model, problem);
           }}};
  std::optional<LaunchPreparer> preparer_;
  std::optional<LeftoverCleaner> cleaner_;
  std::optional<CatalogKeeper> catalog_;
  std::optional<ProgramWatch> programs_;
  std::optional<DriverKeeper> drivers_;
  std::optional<MachineMemory> memory_;
  std::optional<MeasuredLoads> measured_;
  std::optional<ModelNeeds> needs_;
  std::optional<UnplacedModels> unplaced_;
  std::optional<KnownArchitectures> architectures_;
  std::optional<ModelCheck> check_;
  std::unique_ptr<residency::RequestBook> requests_;
  std::unique_ptr<residency::Residency> residency_;
  std::optional<LoopMonitor> monitor_;
  gateway::KeyGate limits_{clock_};
  gateway::KeyAuthenticator authenticator_;
  const std::shared_ptr<admin::CallerWatch> callers_ = std::make_shared<admin::CallerWatch>(
      [this](const core::Caller& caller) { return authenticator_.recheck(caller); });
  std::optional<KeyKeeper> keys_;
  std::optional<admin::ServerState> state_;
  std::optional<Fronts> fronts_;

  int unknown_parts_ = 2;  // before it listens: memory, models
  std::atomic<bool> ready_{false};
  bool stopping_ = false;
  bool rereading_ = false;
  bool reload_wanted_ = false;
  std::string config_problem_;  // of the last reload; empty: none
  SteadyTime stop_began_{};
  std::optional<Error> failure_;
  const std::optional<Duration> watchdog_ = systemd::watchdog_interval();
  SteadyTime watchdog_fed_{};
  SteadyTime status_shown_{};
  std::string status_;
};

}  // namespace berth
