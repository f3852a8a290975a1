#include "supervisor/launch_preparer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "supervisor/command_launch.h"
#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_tail.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr std::size_t kTailLines = 20;
constexpr Duration kSizePeriod = std::chrono::seconds(30);
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

LaunchPreparer::LaunchPreparer(Parts parts) : parts_(std::move(parts)) {
  watch_sizes();
}

void LaunchPreparer::prepare(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                             std::function<void(Result<residency::PreparedLaunch>)> done) {
  if (model->settings.kind == catalog::Kind::kCommand) {
    return prepare_command_model(std::move(model), instance, std::move(done));
  }
  const std::string socket = worker_socket(parts_.run_dir, instance);
  process::LogHeader header;
  header.instance = instance.to_string();
  header.time = parts_.clock.wall_now();
  header.command = worker_arguments(parts_.worker_program, *model, instance, socket);
  parts_.run_blocking(
      [this, model = std::move(model), socket, header = std::move(header), done = std::move(done)] {
        auto log = std::make_shared<Result<process::OpenedLog>>(
            process::open_log(parts_.log, model->name, header));
        parts_.clock.post([this, model, socket, header, done, log] {
          residency::PreparedLaunch prepared;
          prepared.socket = socket;
          prepared.spec.program = parts_.worker_program;
          prepared.spec.argv = header.command;
          prepared.spec.environment = worker_environment(parts_.environment, model->settings);
          prepared.shown_argv = prepared.spec.argv;
          prepared.shown_environment = changed(parts_.environment, prepared.spec.environment);
          prepared.spec.oom_score_adj = kWorkerOomScore;
          take_log(model->name, std::move(*log), prepared);
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
  struct Work {
    Result<CommandLaunch> launch = fail(Reason::kInternal, "");
    Result<process::OpenedLog> log = fail(Reason::kInternal, "");
    CommandTemplate open;
  };
  CommandTemplate open = command_template(model->settings, parts_.environment);
  process::LogHeader header;
  header.instance = instance.to_string();
  header.time = parts_.clock.wall_now();
  header.command = open.argv;  // without the key, which is nobody's business
  const std::string socket = worker_socket(parts_.run_dir, instance);
  parts_.run_blocking([this, model = std::move(model), open = std::move(open),
                       header = std::move(header), socket, done = std::move(done)] {
    auto work = std::make_shared<Work>();
    work->open = open;
    work->launch = prepare_command(model->settings, open, socket);
    if (work->launch) work->log = process::open_log(parts_.log, model->name, header);
    parts_.clock.post([this, model, instance = header.instance, done, work] {
      if (!work->launch) return done(fail(work->launch.error()));
      CommandLaunch launch = *std::move(work->launch);
      residency::PreparedLaunch prepared;
      prepared.socket =
          launch.socket.empty() ? "127.0.0.1:" + std::to_string(launch.port.port) : launch.socket;
      parts_.commands.put(
          instance,
          {.model = model->name,
           .address = {launch.socket.empty() ? launch.port.port : std::uint16_t{0}, launch.socket},
           .key = launch.key,
           .probe = command_probe(*model),
           .sequences = model->settings.sequences});
      prepared.spec.program = std::move(launch.program);
      prepared.spec.argv = std::move(launch.argv);
      prepared.spec.environment = std::move(launch.environment);
      prepared.spec.directory = std::move(launch.directory);
      prepared.shown_argv = std::move(work->open.argv);
      prepared.shown_environment = changed(parts_.environment, std::move(work->open.environment));
      prepared.spec.oom_score_adj = kWorkerOomScore;
      prepared.spec.shim = parts_.shim_program;
      prepared.spec.reservation = std::move(launch.port.socket);
      prepared.spec.started = [this, name = model->name, instance](pid_t pid) {
        parts_.commands.started(name, instance, pid);
      };
      take_log(model->name, std::move(work->log), prepared);
      done(std::move(prepared));
    });
  });
}

void LaunchPreparer::take_log(const std::string& model, Result<process::OpenedLog> log,
                              residency::PreparedLaunch& prepared) {
  if (log) {
    prepared.spec.output = std::move(log->output);
    prepared.log = logs_[model] = {log->path, log->start};
    return;
  }
  logs_.erase(model);
  parts_.events.emit_typed(events::LogUnwritable{.model = model, .problem = log.error().message});
}

void LaunchPreparer::log_tail(const std::string& model, const Uuid& /*instance*/,
                              std::function<void(std::vector<std::string>)> done) {
  const auto place = logs_.find(model);
  if (place == logs_.end()) {
    parts_.clock.post([done = std::move(done)] { done({}); });
    return;
  }
  parts_.run_blocking([this, place = place->second, done = std::move(done)] {
    Result<std::vector<std::string>> lines =
        process::tail_lines(place.path, place.start, kTailLines);
    parts_.clock.post(
        [done, lines = lines ? *std::move(lines) : std::vector<std::string>()] { done(lines); });
  });
}

void LaunchPreparer::watch_sizes() {
  sizes_ = parts_.clock.sleep_for(kSizePeriod, [this] {
    for (const auto& [model, place] : logs_) {
      parts_.run_blocking([this, model = model, path = place.path] {
        const Result<process::LogCut> cut = process::trim_live(path);
        if (!cut || !cut->cut) return;
        parts_.events.emit_typed(events::LogTruncated{
            .model = model, .size_bytes = static_cast<std::int64_t>(cut->size_before)});
      });
    }
    watch_sizes();
  });
}

}  // namespace berth
