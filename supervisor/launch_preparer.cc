#include "supervisor/launch_preparer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "supervisor/command_launch.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_tail.h"
#include "supervisor/socket_room.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr std::size_t kTailLines = 20;
// Of the logs that nobody reads: of workers that are ready, and of those that have ended. A disk
// takes some 500 MB in that time.
constexpr Duration kSizePeriod = std::chrono::seconds(1);
constexpr int kWorkerOomScore = 500;  // the kernel takes a worker before it takes berthd

rpc::CommandProbe command_probe(const catalog::Model& model) {
  constexpr std::string_view kPath = "path:";
  const std::string& probe = model.settings.probe;
  if (probe == "embedding") return {rpc::ProbeKind::kEmbedding, {}, model.name};
  if (probe.starts_with(kPath)) {
    return {rpc::ProbeKind::kPath, probe.substr(kPath.size()), model.name};
  }
  return {rpc::ProbeKind::kCompletion, {}, model.name};
}

// What a child has that berthd has not (L18).
std::vector<std::string> changed(const std::vector<std::string>& own,
                                 std::vector<std::string> childs) {
  std::erase_if(childs, [&own](const std::string& variable) {
    return std::find(own.begin(), own.end(), variable) != own.end();
  });
  return childs;
}

}  // namespace

struct LaunchPreparer::CommandWork {
  std::shared_ptr<const catalog::Model> model;
  std::function<void(Result<residency::PreparedLaunch>)> done;
  CommandTemplate open;
  process::LogHeader header;
  std::string socket;  // where it would be
  Result<CommandLaunch> launch = fail(Reason::kInternal, "");
  std::string program;
  Result<process::OpenedLog> log = fail(Reason::kInternal, "");
};

LaunchPreparer::LaunchPreparer(Parts parts)
    : parts_(std::move(parts)), programs_(parts_.clock, parts_.programs) {
  watch_sizes();
}

void LaunchPreparer::prepare(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                             const residency::LaunchPlan& plan,
                             std::function<void(Result<residency::PreparedLaunch>)> done) {
  // From now on the file may hold words of this one.
  logs_[model->name] = {instance.to_string(), std::nullopt};
  if (model->settings.kind == catalog::Kind::kCommand) {
    return prepare_command_model(std::move(model), instance, std::move(done));
  }
  const std::string socket = worker_socket(parts_.run_dir, instance);
  process::LogHeader header;
  header.instance = instance.to_string();
  header.time = parts_.clock.wall_now();
  const WorkerPlace place =
      planned_place(*model, plan, parts_.domains ? parts_.domains() : core::DomainTable());
  header.command = worker_arguments(parts_.worker_program, *model, place, instance, socket);
  parts_.run_blocking([this, model = std::move(model), socket, header = std::move(header),
                       environment = worker_environment(parts_.environment, place),
                       done = std::move(done)] {
    auto log = std::make_shared<Result<process::OpenedLog>>(
        process::open_log(parts_.log, model->name, header));
    parts_.clock.post([this, model, socket, header, environment, done, log,
                       room = make_room_for_socket(parts_.run_dir)] {
      residency::PreparedLaunch prepared;
      prepared.socket = socket;
      prepared.spec.program = parts_.worker_program;
      prepared.spec.argv = header.command;
      prepared.spec.environment = environment;
      prepared.shown_argv = prepared.spec.argv;
      prepared.shown_environment = changed(parts_.environment, prepared.spec.environment);
      prepared.first_load_arguments = first_load_arguments();
      mark(header.instance, prepared);
      prepared.spec.oom_score_adj = kWorkerOomScore;
      take_log(model->name, header.instance, std::move(*log), prepared);
      if (!room) return done(fail(room.error()));
      done(std::move(prepared));
    });
  });
}

void LaunchPreparer::prepare_command_model(
    std::shared_ptr<const catalog::Model> model, const Uuid& instance,
    std::function<void(Result<residency::PreparedLaunch>)> done) {
  if (parts_.shim_program.empty()) {
    parts_.clock.post([done = std::move(done)] {
      done(fail(Reason::kLoadFailed,
                "berth-shim is neither beside berthd nor in ../libexec/berth. Install it there."));
    });
    return;
  }
  auto work = std::make_shared<CommandWork>();
  work->open = command_template(model->settings, parts_.environment);
  work->header.instance = instance.to_string();
  work->header.time = parts_.clock.wall_now();
  work->header.command = work->open.argv;  // without the key, which is nobody's business
  work->socket = worker_socket(parts_.run_dir, instance);
  work->model = std::move(model);
  work->done = std::move(done);
  parts_.run_blocking([this, work] {
    work->launch =
        prepare_command(work->model->settings, work->open, work->socket, parts_.commands.ports());
    if (work->launch && !work->launch->socket.empty()) {
      const Status room = make_room_for_socket(parts_.run_dir);
      if (!room) work->launch = fail(room.error());
    }
    parts_.clock.post([this, work] { find_command(work); });
  });
}

bool LaunchPreparer::gave_up(const CommandWork& work) const {
  const auto newest = logs_.find(work.model->name);
  if (newest != logs_.end() && newest->second.instance == work.header.instance) return false;
  work.done(fail(Reason::kLoadFailed, "a newer launch of the model took its place"));
  return true;
}

void LaunchPreparer::find_command(const std::shared_ptr<CommandWork>& work) {
  if (gave_up(*work)) return;
  if (!work->launch) return work->done(fail(work->launch.error()));
  programs_.read(work->launch->place, [this, work](Result<std::string> program) {
    if (!program) return work->done(fail(std::move(program).error()));
    if (gave_up(*work)) return;
    work->program = *std::move(program);
    open_command_log(work);
  });
}

void LaunchPreparer::open_command_log(const std::shared_ptr<CommandWork>& work) {
  parts_.run_blocking([this, work] {
    work->log = process::open_log(parts_.log, work->model->name, work->header);
    parts_.clock.post([this, work] { finish_command(work); });
  });
}

void LaunchPreparer::finish_command(const std::shared_ptr<CommandWork>& work) {
  if (gave_up(*work)) return;
  CommandLaunch launch = *std::move(work->launch);
  const catalog::Model& model = *work->model;
  const std::string& instance = work->header.instance;
  residency::PreparedLaunch prepared;
  prepared.socket =
      launch.socket.empty() ? "127.0.0.1:" + std::to_string(launch.port.port) : launch.socket;
  parts_.commands.put(
      instance,
      {.model = model.name,
       .address = {launch.socket.empty() ? launch.port.port : std::uint16_t{0}, launch.socket},
       .key = launch.key,
       .probe = command_probe(model),
       .sequences = model.settings.sequences,
       .port_claim = std::move(launch.port.claim)});
  prepared.spec.program = std::move(work->program);
  prepared.spec.argv = std::move(launch.argv);
  prepared.spec.environment = std::move(launch.environment);
  prepared.spec.directory = std::move(launch.place.directory);
  prepared.shown_argv = std::move(work->open.argv);
  prepared.shown_environment = changed(parts_.environment, std::move(work->open.environment));
  mark(instance, prepared);
  prepared.spec.oom_score_adj = kWorkerOomScore;
  prepared.spec.shim = parts_.shim_program;
  prepared.spec.reservation = std::move(launch.port.socket);
  prepared.spec.started = [this, name = model.name, instance](pid_t pid) {
    parts_.commands.started(name, instance, pid);
  };
  take_log(model.name, instance, std::move(work->log), prepared);
  work->done(std::move(prepared));
}

void LaunchPreparer::mark(const std::string& instance, residency::PreparedLaunch& prepared) const {
  // The last: a program that writes a title over its arguments and what follows them spoils the
  // first variables.
  prepared.spec.environment.push_back(process::instance_mark(instance, parts_.mark_owner));
  prepared.spec.cgroup = instance;
}

void LaunchPreparer::take_log(const std::string& model, const std::string& instance,
                              Result<process::OpenedLog> log, residency::PreparedLaunch& prepared) {
  if (!log) {
    parts_.events.emit_typed(events::LogUnwritable{.model = model, .problem = log.error().message});
    return;
  }
  uncut_.erase(model);  // one that is too long was rotated
  prepared.spec.output = std::move(log->output);
  prepared.log = process::LogPlace{log->path, log->start, model};
  NewestLog& newest = logs_[model];
  if (newest.instance == instance) newest.place = prepared.log;
}

const process::LogPlace* LaunchPreparer::place_of(const std::string& model,
                                                  const std::string& instance) const {
  const auto newest = logs_.find(model);
  if (newest == logs_.end() || newest->second.instance != instance) return nullptr;
  return newest->second.place ? &*newest->second.place : nullptr;
}

void LaunchPreparer::log_tail(const std::string& model, const Uuid& instance,
                              std::function<void(std::vector<std::string>)> done) {
  const std::string id = instance.to_string();
  const process::LogPlace* const place = place_of(model, id);
  if (place == nullptr) {
    parts_.clock.post([done = std::move(done)] { done({}); });
    return;
  }
  parts_.run_blocking([this, model, id, place = *place, done = std::move(done)] {
    auto lines = std::make_shared<std::vector<std::string>>();
    if (auto read = process::tail_lines(place.path, place.start, kTailLines)) {
      *lines = *std::move(read);
    }
    parts_.clock.post([this, model, id, done, lines] {
      // A newer instance may have begun to write meanwhile.
      if (place_of(model, id) == nullptr) lines->clear();
      done(std::move(*lines));
    });
  });
}

struct LaunchPreparer::SizeLook {
  struct Log {
    process::LogPlace place;
    std::uint64_t limit = 0;  // bytes
  };
  std::vector<Log> logs;
  std::uint64_t keeps = 0;
  std::map<std::string, std::uint64_t> cuts;    // sizes before them, by model
  std::map<std::string, std::string> problems;  // why there was no cut, by model
};

void LaunchPreparer::watch_sizes() {
  sizes_ = parts_.clock.sleep_for(kSizePeriod, [this] {
    auto look = std::make_shared<SizeLook>();
    look->keeps = parts_.cut_keeps;
    for (const auto& [model, newest] : logs_) {
      if (!newest.place) continue;
      // What a load's watch has not read yet may be the reason why the load fails. It cuts what it
      // has read; for the rest its log may grow to twice that (process::LogJudge).
      const bool read = parts_.log_is_read && parts_.log_is_read(newest.place->path);
      look->logs.push_back({*newest.place, read ? 2 * parts_.cut_over : parts_.cut_over});
    }
    if (look->logs.empty()) return watch_sizes();
    // The next look comes after this one, however long the disk takes.
    parts_.run_blocking([this, look] {
      cut_long_ones(*look);
      parts_.clock.post([this, look] {
        for (const auto& [model, size] : look->cuts) tell_cut(model, size);
        for (const auto& [model, problem] : look->problems) tell_uncut(model, problem);
        watch_sizes();
      });
    });
  });
}

void LaunchPreparer::cut_long_ones(SizeLook& look) {
  for (const auto& [place, limit] : look.logs) {
    const Result<process::LogCut> cut = process::trim_live(place.path, limit, look.keeps);
    if (cut) {
      if (cut->cut) look.cuts[place.model] = cut->size_before;
    } else if (cut.error().reason != Reason::kNotFound) {  // else somebody took it away
      look.problems[place.model] = cut.error().message;
    }
  }
}

void LaunchPreparer::tell_cut(const std::string& model, std::uint64_t size_before) {
  uncut_.erase(model);
  parts_.events.emit_typed(
      events::LogTruncated{.model = model, .size_bytes = static_cast<std::int64_t>(size_before)});
}

void LaunchPreparer::tell_uncut(const std::string& model, const std::string& problem) {
  if (!uncut_.insert(model).second) return;
  parts_.events.emit_typed(events::ServerDegraded{
      .part = "log", .problem = "The log of " + model + " grows over its bound: " + problem});
}

}  // namespace berth
