#include "supervisor/daemon_program.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/cores.h"
#include "common/event.h"
#include "supervisor/config_reload.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/load_provenance.h"
#include "supervisor/memory/device_environment.h"
#include "supervisor/process/own_cgroup.h"
#include "supervisor/process/proc.h"
#include "supervisor/process_tree_sampler.h"
#include "supervisor/programs.h"
#include "supervisor/worker_command.h"
#include "supervisor/worker_question.h"

namespace berth {
namespace {

constexpr auto kLeftoverWait = std::chrono::milliseconds(5000);
constexpr auto kExecWait =
    std::chrono::milliseconds(1000);  // the core strand stands still meanwhile

}  // namespace

// L3: where systemd gave berthd its cgroup, each worker gets one of its own in that. Where it did
// not, workers are ended by signals alone.
void Daemon::take_cgroup() {
  const Result<std::string> own = process::delegated_cgroup();
  if (own) {
    cgroup_ = *own;
    Result<std::unique_ptr<process::WorkerCgroups>> taken = process::WorkerCgroups::take_over(*own);
    if (taken) {
      cgroups_ = *std::move(taken);
    } else {
      on_cgroup_problem(taken.error().message);
    }
  } else if (process::runs_as_service()) {
    on_cgroup_problem(own.error().message);
  }
}

void Daemon::on_cgroup_problem(const std::string& problem) {
  cgroup_problem_ = "Workers have no cgroups of their own: " + problem + ".";
  events_->emit_typed(events::ServerDegraded{.part = "cgroup", .problem = cgroup_problem_});
}

Status Daemon::build_core() {
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
  build_launches();
  build_catalog();
  build_cleaner();
  requests_ = std::make_unique<residency::RequestBook>(clock_, *events_);
  requests_->on_end(
      [this](const residency::RequestRecord& record) { metrics_->on_request_end(record); });
  build_memory();
  build_residency();
  return {};
}

// How workers are started, and talked to.
void Daemon::build_launches() {
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
      .run_look =
          [this](std::function<void()> look) { boost::asio::post(look_pool_, std::move(look)); },
      .runs = commands_,
      .workers = connector_});
}

// Which models there are, and what loads of them depend on.
void Daemon::build_catalog() {
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
}

void Daemon::build_cleaner() {
  const auto own = process::read_stat(getpid());
  cleaner_.emplace(LeftoverCleaner::Parts{.clock = clock_,
                                          .events = *events_,
                                          .store = *store_,
                                          .run_blocking = run_blocking_,
                                          .boot_id = ground_->boot_id,
                                          .start_ticks = own ? own->start_ticks : 0,
                                          .kill =
                                              [](const std::vector<process::Leftover>& leftovers) {
                                                return process::kill_leftovers(leftovers,
                                                                               kLeftoverWait);
                                              },
                                          .kill_marked = [this] { return kill_marked(); }});
}

// The domains, what loads took of them, and what models need.
void Daemon::build_memory() {
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
      .main_memory = [this] { return memory_->keeper().main_memory(); },
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
}

void Daemon::build_residency() {
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
                programs_->look_for_launch(*model, [this, model, instance, done = std::move(done)] {
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
                return std::make_unique<ProcessTreeSampler>(clock_, run_blocking_, pid, start_ticks,
                                                            std::move(log));
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
}

// What a load of that model depends on (L19).
core::Provenance Daemon::provenance_of(const catalog::Model& model) {
  return load_provenance(model, environment_, programs_->files_of(model.name), drivers_->drivers());
}

residency::MemoryAccess Daemon::memory_access() {
  residency::MemoryAccess access = memory_->keeper().access();
  needs_->join(access);
  unplaced_.emplace(UnplacedModels::Parts{.events = *events_,
                                          .catalog = [this] { return catalog_->snapshot(); },
                                          .problem = access.device_problem,
                                          .pins = [this] { return residency_->pin_problems(); }});
  architectures_.emplace(
      WorkerQuestion::Parts{.clock = clock_,
                            .launcher = *launcher_,
                            .on_readable = readable_on(io_),
                            .program = ground_->worker,
                            .environment = memory::listing_environment(environment_)});
  check_.emplace(ModelCheck::Parts{
      .clock = clock_,
      .events = *events_,
      .run_alone = run_alone_,
      .files_changed = [this] { catalog_->rescan(); },
      .knows =
          [this](const std::string& architecture, std::function<void(bool)> done) {
            architectures_->ask(architecture, std::move(done));
          }});
  access.check = [this](const std::shared_ptr<const catalog::Model>& model,
                        std::function<void(Status)> done) {
    check_->check(model, std::move(done));
  };
  return access;
}

// Before it listens the devices may not be known yet.
void Daemon::look_for_devices() {
  if (ready_) unplaced_->look();
}

// What the kernel tells of the process that is launched next comes behind the place at which its
// log is now (L9).
std::function<void(Result<residency::PreparedLaunch>)> Daemon::noting_kernel_log(
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
std::vector<process::MarkedLeftover> Daemon::kill_marked() {
  auto marked =
      cgroups_ ? cgroups_->clear_leftovers(kLeftoverWait) : std::vector<process::MarkedLeftover>();
  std::ranges::move(process::kill_marked(ground_->mark_owner, kLeftoverWait),
                    std::back_inserter(marked));
  remove_dead_sockets(worker_directory(config_->server.run_dir));
  return marked;
}

}  // namespace berth
