#include "supervisor/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/cores.h"
#include "common/durations.h"
#include "common/log.h"
#include "common/own_environment.h"
#include "common/sd_notify.h"
#include "common/text.h"
#include "common/uuid.h"
#include "common/version.h"
#include "supervisor/admin/caller_watch.h"
#include "supervisor/admin/event_hub.h"
#include "supervisor/admin/metrics.h"
#include "supervisor/admin/resident_memory.h"
#include "supervisor/admin/server_state.h"
#include "supervisor/catalog_keeper.h"
#include "supervisor/config_reload.h"
#include "supervisor/daemon_ground.h"
#include "supervisor/device_drivers.h"
#include "supervisor/early_log.h"
#include "supervisor/fd_wait.h"
#include "supervisor/fronts.h"
#include "supervisor/key_keeper.h"
#include "supervisor/known_architectures.h"
#include "supervisor/launch_preparer.h"
#include "supervisor/leftover_cleaner.h"
#include "supervisor/load_provenance.h"
#include "supervisor/loop_monitor.h"
#include "supervisor/machine_memory.h"
#include "supervisor/measured_loads.h"
#include "supervisor/memory/oom_kill.h"
#include "supervisor/model_check.h"
#include "supervisor/model_need.h"
#include "supervisor/process/asio_clock.h"
#include "supervisor/process/file_log_watcher.h"
#include "supervisor/process/leftovers.h"
#include "supervisor/process/own_cgroup.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/process_launcher.h"
#include "supervisor/process/subreaper.h"
#include "supervisor/process/worker_cgroup.h"
#include "supervisor/process_tree_sampler.h"
#include "supervisor/program_watch.h"
#include "supervisor/programs.h"
#include "supervisor/residency/request_book.h"
#include "supervisor/residency/residency.h"
#include "supervisor/rpc/grpc_worker_client.h"
#include "supervisor/store/sqlite_store.h"
#include "supervisor/tree_memory.h"
#include "supervisor/unplaced_models.h"
#include "supervisor/worker_command.h"
#include "supervisor/worker_connectors.h"
#include "supervisor/worker_question.h"

namespace berth {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kPoolThreads = 2;
constexpr auto kLeftoverWait = std::chrono::milliseconds(5000);
constexpr auto kGrpcEnd = std::chrono::milliseconds(1000);
constexpr Duration kMemoryAge = std::chrono::seconds(1);  // of what the state shows
constexpr Duration kStatusPeriod = std::chrono::seconds(5);
constexpr auto kExecWait =
    std::chrono::milliseconds(1000);  // the core strand stands still meanwhile

// What gRPC's threads may still post to when everything else has ended, so it is never destroyed.
struct CoreStrand {
  asio::io_context io{1};
  process::AsioClock clock{io};
};

CoreStrand& core_strand() {
  static auto* const strand = new CoreStrand;
  return *strand;
}

std::string join(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) joined += (joined.empty() ? "" : ",") + part;
  return joined;
}

// The program: owns every part, starts them in the order of the layers and stops them in reverse.
// Everything runs on the core strand unless it says otherwise.
class Daemon {
 public:
  Daemon(const DaemonOptions& options, catalog::Config config)
      : options_(options), config_(std::make_shared<const catalog::Config>(std::move(config))) {}
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  int run() {
    const Status prepared = prepare();
    if (prepared) {
      clock_.post([this] { begin(); });
      io_.run();
    } else {
      failure_ = prepared.error();
    }
    close();
    if (!failure_) return 0;
    std::fprintf(stderr, "berthd: %s\n", failure_->message.c_str());
    return 1;
  }

 private:
  // --- Start. First what may block and can only fail for good reasons, before the loop runs.
  Status prepare() {
    Result<DaemonGround> ground = prepare_ground(config_->server, !options_.demo_dir.empty());
    if (!ground) return fail(ground.error());
    ground_.emplace(*std::move(ground));
    return open_outlets();
  }

  Status open_outlets() {
    Result<std::unique_ptr<LogWriter>> log = LogWriter::start({.format = options_.log_format});
    if (!log) return fail(log.error());
    log_ = *std::move(log);
    early_log_.emplace(*log_);
    store::StoreOptions store_options;
    store_options.path = config_->server.state_dir + "/state.db";
    store_options.on_degraded = [this](events::ServerDegraded event) {
      if (events_) events_->emit_typed(std::move(event));
    };
    Result<std::unique_ptr<store::RealStore>> store =
        store::RealStore::open(std::move(store_options), clock_);
    if (!store) return fail(store.error());
    store_ = *std::move(store);
    events_ = std::make_unique<admin::EventHub>(clock_, store_->last_sequence());
    events_->add_outlet([this](const Event& event) { early_log_->write(event); });
    metrics_.emplace(clock_);
    events_->add_outlet([this](const Event& event) { metrics_->on_event(event); });
    events_->add_outlet([this](const Event& event) {
      if (event.level != Level::kDebug) store_->put_event(event);
    });
    return build_core();
  }

  // L3: where systemd gave berthd its cgroup, each worker gets one of its own in that. Where it did
  // not, workers are ended by signals alone.
  void take_cgroup() {
    const Result<std::string> own = process::delegated_cgroup();
    if (own) {
      cgroup_ = *own;
      Result<std::unique_ptr<process::WorkerCgroups>> taken =
          process::WorkerCgroups::take_over(*own);
      if (taken) {
        cgroups_ = *std::move(taken);
      } else {
        on_cgroup_problem(taken.error().message);
      }
    } else if (process::runs_as_service()) {
      on_cgroup_problem(own.error().message);
    }
  }

  void on_cgroup_problem(const std::string& problem) {
    cgroup_problem_ = "Workers have no cgroups of their own: " + problem + ".";
    events_->emit_typed(events::ServerDegraded{.part = "cgroup", .problem = cgroup_problem_});
  }

  Status build_core() {
    take_cgroup();
    launcher_.emplace(
        io_, process::LauncherOptions{.exec_wait = kExecWait,
                                      .cgroups = cgroups_.get(),
                                      .on_cgroup_problem = [this](const std::string& problem) {
                                        on_cgroup_problem(problem);
                                      }});
    Result<std::unique_ptr<process::Subreaper>> subreaper =
        process::Subreaper::start(io_, [this](pid_t pid) { return launcher_->owns(pid); });
    if (!subreaper) return fail(subreaper.error());
    subreaper_ = *std::move(subreaper);
    preparer_.emplace(LaunchPreparer::Parts{
        .clock = clock_,
        .events = *events_,
        .run_blocking = run_blocking_,
        .worker_program = ground_->worker,
        .shim_program = shim_program(),
        .environment = own_environment(),
        .run_dir = config_->server.run_dir,
        .mark_owner = ground_->mark_owner,
        .log = {.directory = config_->server.log_dir, .keep = config_->server.log_keep},
        .commands = commands_,
        .log_is_read = [this](const std::string& path) { return log_watcher_.reads(path); },
        .domains = [this]() -> const core::DomainTable& { return memory_->keeper().table(); }});
    connectors_.emplace(WorkerConnectors::Parts{
        .clock = clock_,
        .events = *events_,
        .io = io_,
        .run_blocking = run_blocking_,
        .run_look = [this](std::function<void()> look) { asio::post(look_pool_, std::move(look)); },
        .runs = commands_,
        .workers = connector_});
    catalog_.emplace(CatalogKeeper::Parts{.clock = clock_,
                                          .events = *events_,
                                          .config = config_,
                                          .run_blocking = run_blocking_,
                                          .on_readable = readable_on(io_),
                                          .on_changed = [this] {
                                            // L23; before the first request there is none to judge
                                            if (residency_) residency_->catalog_changed();
                                            programs_->look();
                                            drivers_->look();
                                            look_for_devices();
                                          }});
    drivers_.emplace(DriverKeeper::Parts{.clock = clock_,
                                         .run_blocking = run_blocking_,
                                         .read = [] { return DeviceDrivers::read(); },
                                         .on_changed =
                                             [this] {
                                               if (residency_) residency_->catalog_changed();
                                             }});
    programs_.emplace(ProgramWatch::Parts{.clock = clock_,
                                          .run_alone = run_alone_,
                                          .run_blocking = run_blocking_,
                                          .on_readable = readable_on(io_),
                                          .environment = own_environment(),
                                          .catalog = [this] { return catalog_->snapshot(); },
                                          .on_changed =
                                              [this] {
                                                if (residency_) residency_->catalog_changed();
                                              }});
    const auto own = process::read_stat(getpid());
    cleaner_.emplace(
        LeftoverCleaner::Parts{.clock = clock_,
                               .events = *events_,
                               .store = *store_,
                               .run_blocking = run_blocking_,
                               .boot_id = ground_->boot_id,
                               .start_ticks = own ? own->start_ticks : 0,
                               .kill =
                                   [](const std::vector<process::Leftover>& leftovers) {
                                     return process::kill_leftovers(leftovers, kLeftoverWait);
                                   },
                               .kill_marked = [this] { return kill_marked(); }});
    requests_ = std::make_unique<residency::RequestBook>(clock_, *events_);
    requests_->on_end(
        [this](const residency::RequestRecord& record) { metrics_->on_request_end(record); });
    memory_.emplace(MachineMemory::Parts{
        .clock = clock_,
        .events = *events_,
        .run_blocking = run_blocking_,
        .on_readable = readable_on(io_),
        .launcher = *launcher_,
        .worker_program = ground_->worker,
        .environment = own_environment(),
        .cgroup = cgroup_,
        .budgets = config_->memory.budgets,
        .instances = [this] { return residency_->instances(); },
        .on_changed =
            [this] {
              residency_->memory_changed();
              look_for_devices();
            },
        .on_process = [this](pid_t child, core::DomainIndex domain,
                             std::uint64_t bytes) { measured_->seen(child, domain, bytes); }});
    measured_.emplace(MeasuredLoads::Parts{
        .clock = clock_,
        .store = *store_,
        .events = *events_,
        .table = [this]() -> const core::DomainTable& { return memory_->keeper().table(); },
        .on_charge =
            [this](const Uuid& instance, const residency::MeasuredCharge& charge) {
              residency_->recharge(instance, charge);
            }});
    events_->add_outlet([this](const Event& event) { memory_->on_event(event); });
    needs_.emplace(ModelNeeds::Parts{
        .table = [this]() -> const core::DomainTable& { return memory_->keeper().table(); },
        .config = [this] { return config_; },
        .measured = [this](const std::string& key) { return measured_->find(key); },
        .provenance = [this](const catalog::Model& model) { return provenance_of(model); },
        .cores = usable_cores(),
        .repacks = processor_repacks()});
    residency_ = std::make_unique<residency::Residency>(
        residency::Environment{
            .clock = clock_,
            .ids = ids_,
            .launcher = *launcher_,
            .connector = *connectors_,
            .store = *store_,
            .events = *events_,
            .prepare_launch =
                [this](std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                       const residency::LaunchPlan& plan,
                       std::function<void(Result<residency::PreparedLaunch>)> done) {
                  done = noting_kernel_log(std::move(done));
                  if (model->settings.kind != catalog::Kind::kCommand) {
                    return preparer_->prepare(std::move(model), instance, plan, std::move(done));
                  }
                  programs_->look_for_launch(*model,
                                             [this, model, instance, done = std::move(done)] {
                                               preparer_->prepare(model, instance, {}, done);
                                             });
                },
            .log_tail =
                [this](const std::string& model, const Uuid& instance,
                       std::function<void(std::vector<std::string>)> done) {
                  preparer_->log_tail(model, instance, std::move(done));
                },
            .boot_id = ground_->boot_id,
            .provenance = [this](const catalog::Model& model) { return provenance_of(model); },
            .memory = [this] { return memory_->keeper().free_now(); },
            .watch_tree =
                [this](pid_t pid, std::uint64_t start_ticks, UniqueFd log) {
                  return std::make_unique<ProcessTreeSampler>(clock_, run_blocking_, pid,
                                                              start_ticks, std::move(log));
                },
            .log_watcher = &log_watcher_,
            .find_model = [this](const std::string& name) -> std::shared_ptr<const catalog::Model> {
              auto found = catalog_->snapshot()->find(name);
              return found ? *found : nullptr;
            },
            .oom_killed =
                [this](pid_t pid, std::function<void(bool)> done) {
                  run_blocking_([this, noted = kernel_log_.take(pid), done = std::move(done)] {
                    const bool killed = noted.place && noted.place->tells_of_kill(noted.pids);
                    clock_.post([done, killed] { done(killed); });
                  });
                },
            .standing_met = [this] { programs_->standing_met(); },
            .oom_counted = [this](pid_t pid) { return launcher_->counted_oom_kill(pid); },
            .memory_access = memory_access(),
            .load_meter = &*measured_,
            .configured_pins = [this] { return catalog_->pinned(); }},
        limits_of(*config_));
    return {};
  }

  // What a load of that model depends on (L19).
  core::Provenance provenance_of(const catalog::Model& model) {
    return load_provenance(model, environment_, programs_->files_of(model.name),
                           drivers_->drivers());
  }

  residency::MemoryAccess memory_access() {
    residency::MemoryAccess access = memory_->keeper().access();
    needs_->join(access);
    unplaced_.emplace(UnplacedModels::Parts{.events = *events_,
                                            .catalog = [this] { return catalog_->snapshot(); },
                                            .problem = access.device_problem});
    architectures_.emplace(WorkerQuestion::Parts{.clock = clock_,
                                                 .launcher = *launcher_,
                                                 .on_readable = readable_on(io_),
                                                 .program = ground_->worker,
                                                 .environment = listing_environment(environment_)});
    check_.emplace(ModelCheck::Parts{
        .clock = clock_,
        .events = *events_,
        .run_alone = run_alone_,
        .files_changed = [this] { catalog_->rescan(); },
        .knows =
            [this](const std::string& architecture, std::function<void(bool)> done) {
              architectures_->ask(architecture, std::move(done));
            }});
    access.check = [this](std::shared_ptr<const catalog::Model> model,
                          std::function<void(Status)> done) {
      check_->check(std::move(model), std::move(done));
    };
    return access;
  }

  // Before it listens the devices may not be known yet.
  void look_for_devices() {
    if (ready_) unplaced_->look();
  }

  // What the kernel tells of the process that is launched next comes behind the place at which its
  // log is now (L9).
  std::function<void(Result<residency::PreparedLaunch>)> noting_kernel_log(
      std::function<void(Result<residency::PreparedLaunch>)> done) {
    return [this, done = std::move(done)](Result<residency::PreparedLaunch> prepared) {
      if (prepared) {
        prepared->spec.started = [this, place = memory::KernelLogPlace::newest(),
                                  also = std::move(prepared->spec.started)](pid_t pid) {
          kernel_log_.put(pid, place, process::children_of(pid));
          if (also) also(pid);
        };
      }
      done(std::move(prepared));
    };
  }

  // What lives on though nobody recorded it. On the pool.
  std::vector<process::MarkedLeftover> kill_marked() {
    auto marked = cgroups_ ? cgroups_->clear_leftovers(kLeftoverWait)
                           : std::vector<process::MarkedLeftover>();
    std::ranges::move(process::kill_marked(ground_->mark_owner, kLeftoverWait),
                      std::back_inserter(marked));
    remove_dead_sockets(worker_directory(config_->server.run_dir));
    return marked;
  }

  // The loop runs from here on.
  void begin() {
    signals_.async_wait([this](boost::system::error_code failed, int signal) {
      if (!failed) on_signal(signal);
    });
    monitor_.emplace(clock_, [this] { tick(); });
    keys_.emplace(KeyKeeper::Parts{.clock = clock_,
                                   .events = *events_,
                                   .run_blocking = run_blocking_,
                                   .on_readable = readable_on(io_),
                                   .authenticator = authenticator_,
                                   .limits = limits_,
                                   .on_changed = [this] { callers_->changed(); }});
    // L4: what an earlier run left behind goes before anything is loaded.
    cleaner_->start([this] {
      memory_->keeper().start([this] { on_part_known(); });
      // The store answers in order: before restore_failures(), for which there is a deadline.
      measured_->begin();
      catalog_->start([this] { programs_->start([this] { on_part_known(); }); });
    });
  }

  // Memory and models are found side by side.
  void on_part_known() {
    if (--unknown_parts_ > 0) return;
    residency_->restore_failures([this] { keys_->use(config_->auth, [this] { listen(); }); });
  }

  void listen() {
    if (stopping_) return;
    state_.emplace(admin::ServerState{
        .services = services(),
        .store = *store_,
        .events = *events_,
        .callers = callers_,
        .config = config_,
        .started = clock_.wall_now(),
        .http = {},
        .grpc = {},
        .state = [this] { return std::string(stopping_ ? "draining" : "ready"); },
        .degraded = [this] { return degraded(); },
        .loop_lag = [this] { return monitor_->worst_lag(); },
        .process_memory = process_memory,
        .tree_memory = admin::remembered(clock_, kMemoryAge, tree_memory),
        .domains = [this] { return memory_->keeper().shown(); },
        .load_ratios = [this] { return measured_->ratios(); },
        .on_readable = readable_on(io_),
        .run_blocking = run_blocking_,
        .pressure = [this] { return std::optional(memory_->keeper().pressure()); },
        .memory_problems = [this] { return memory_->keeper().problems(); }});
    fronts_.emplace(Fronts::Parts{.state = *state_,
                                  .metrics = *metrics_,
                                  .authenticator = authenticator_,
                                  .limits = limits_,
                                  .demo = !options_.demo_dir.empty(),
                                  .ready = [this] { return ready_.load(); }});
    if (const Status listening = fronts_->open(); !listening) {
      failure_ = listening.error();
      return stop("failed start");
    }
    ready_ = true;
    events_->emit_typed(events::ServerListening{.http = state_->http.empty() ? "-" : state_->http,
                                                .grpc = join(state_->grpc),
                                                .pid = getpid(),
                                                .version = std::string(kVersion)});
    if (config_->server.tls_cert.empty()) {
      for (const std::string& address : catalog::open_addresses(config_->server)) {
        events_->emit_typed(events::ServerExposed{.address = address});
      }
    }
    if (!config_->ignored.empty()) {
      events_->emit_typed(
          events::ConfigIgnored{.settings = static_cast<std::int64_t>(config_->ignored.size()),
                                .keys = ignored_keys(),
                                .file = config_->file});
    }
    look_for_devices();
    systemd::notify_ready();
    show_status();
    if (std::exchange(reload_wanted_, false)) reload();
  }

  residency::Services services() {
    residency::Services made{
        clock_, ids_, *events_, *residency_, [this] { return catalog_->snapshot(); }, *requests_};
    made.run_blocking = run_blocking_;
    return made;
  }

  // --- Life.
  void on_signal(int signal) {
    signals_.async_wait([this](boost::system::error_code failed, int next) {
      if (!failed) on_signal(next);
    });
    if (signal == SIGHUP) return reload();
    if (stopping_) {
      // Asked twice: no more waiting for streams.
      residency_->shutdown(Duration::zero(), [] {});
      return;
    }
    stop(signal == SIGINT ? "SIGINT" : "SIGTERM");
  }

  // L23: what of the file can change while serving takes effect with the next load of each model.
  void reload() {
    if (!ready_ || rereading_) {
      reload_wanted_ = true;
      return;
    }
    rereading_ = true;
    run_blocking_([this] {
      auto read = std::make_shared<catalog::ConfigResult>(read_config(options_));
      clock_.post([this, read] { take_config(std::move(*read)); });
    });
  }

  void take_config(catalog::ConfigResult read) {
    rereading_ = false;
    ConfigReload reloaded = reload_config(*config_, std::move(read));
    config_problem_.clear();
    if (!reloaded.config) {
      config_problem_ = "The configuration stays as it was: " + reloaded.problem;
    } else if (!reloaded.unapplied.empty()) {
      config_problem_ =
          "These settings take a restart of berthd: " + join_names(reloaded.unapplied) + ".";
    }
    if (!config_problem_.empty()) {
      events_->emit_typed(events::ServerDegraded{.part = "config", .problem = config_problem_});
    }
    if (reloaded.config) {
      config_ = std::move(reloaded.config);
      state_->config = config_;
      catalog_->use(config_);
      residency_->use_waits(limits_of(*config_));
    }
    catalog_->rescan();
    drivers_->look();
    memory_->keeper().use(config_->memory.budgets);
    keys_->use(config_->auth);
    if (std::exchange(reload_wanted_, false)) reload();
  }

  void tick() {
    const SteadyTime now = clock_.now();
    if (watchdog_ && now - watchdog_fed_ >= *watchdog_ / 2) {
      watchdog_fed_ = now;
      systemd::notify_watchdog();
    }
    if (ready_ && now - status_shown_ >= kStatusPeriod) show_status();
  }

  void show_status() {
    status_shown_ = clock_.now();
    const std::string status = std::to_string(catalog_->snapshot()->models().size()) + " models, " +
                               std::to_string(residency_->instances().size()) + " resident";
    if (std::exchange(status_, status) != status) systemd::notify_status(status);
  }

  std::vector<std::string> degraded() {
    std::vector<std::string> problems = catalog_->problems();
    if (!config_->ignored.empty()) {
      problems.push_back("This version does not use " + ignored_keys() + ", set in " +
                         config_->file + ".");
    }
    if (keys_) std::ranges::move(keys_->problems(), std::back_inserter(problems));
    if (!cgroup_problem_.empty()) problems.push_back(cgroup_problem_);
    if (!config_problem_.empty()) problems.push_back(config_problem_);
    std::ranges::move(memory_->keeper().problems(), std::back_inserter(problems));
    std::ranges::move(unplaced_->sentences(), std::back_inserter(problems));
    return problems;
  }

  [[nodiscard]] std::string ignored_keys() const {
    std::vector<std::string> keys;
    for (const catalog::Setting& setting : config_->ignored) keys.push_back(setting.key);
    return join_names(keys);
  }

  // --- End (L29).
  void stop(const std::string& cause) {
    stopping_ = true;
    ready_ = false;
    systemd::notify_stopping();
    std::int64_t active = 0;
    for (const auto& instance : residency_->instances()) active += instance.active;
    events_->emit_typed(events::ServerStopping{.cause = cause, .active_requests = active});
    stop_began_ = clock_.now();
    if (fronts_) fronts_->drain();
    residency_->shutdown(failure_ ? Duration::zero() : Duration(config_->server.drain_timeout),
                         [this] { end_fronts(); });
  }

  void end_fronts() {
    run_blocking_([this] {
      if (fronts_) fronts_->end_calls(kGrpcEnd);
      clock_.post([this] {
        if (fronts_) fronts_->close();
        events_->emit_typed(
            events::ServerStopped{.took_ms = whole_milliseconds(clock_.now() - stop_began_)});
        io_.stop();
      });
    });
  }

  // After the loop. The parts end in reverse order; the store and the log last, as they keep what
  // the others said.
  void close() {
    if (fronts_) fronts_->close();
    pool_.stop();
    look_pool_.stop();
    pool_.join();
    look_pool_.join();
    // Nobody else writes any more.
    if (early_log_) early_log_->release();
    residency_.reset();
    store_.reset();
    if (log_) log_->close();
  }

  const DaemonOptions options_;
  std::shared_ptr<const catalog::Config> config_;  // another one after a reload

  asio::io_context& io_ = core_strand().io;
  process::AsioClock& clock_ = core_strand().clock;
  asio::thread_pool pool_{kPoolThreads};
  asio::thread_pool look_pool_{1};  // looks at who answers for a program
  const process::RunBlocking run_blocking_ = [this](std::function<void()> work) {
    asio::post(pool_, std::move(work));
  };
  // Detached, as nobody can end a thread that a file system holds.
  const process::RunBlocking run_alone_ = [this](std::function<void()> work) {
    try {
      std::thread(work).detach();
    } catch (const std::system_error&) {  // no thread can be had
      run_blocking_(std::move(work));
    }
  };
  asio::signal_set signals_{io_, SIGTERM, SIGINT, SIGHUP};
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

}  // namespace

int run_daemon(const DaemonOptions& options, catalog::Config config) {
  std::signal(SIGPIPE, SIG_IGN);
  Daemon daemon(options, std::move(config));
  return daemon.run();
}

}  // namespace berth
