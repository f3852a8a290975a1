#include "supervisor/launch_preparer.h"

#include <chrono>
#include <optional>
#include <utility>

#include "supervisor/process/log_cut.h"
#include "supervisor/process/log_tail.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

constexpr std::size_t kTailLines = 20;
constexpr Duration kSizePeriod = std::chrono::seconds(30);
constexpr int kWorkerOomScore = 500;  // the kernel takes a worker before it takes berthd

}  // namespace

LaunchPreparer::LaunchPreparer(Parts parts) : parts_(std::move(parts)) {
  watch_sizes();
}

void LaunchPreparer::prepare(std::shared_ptr<const catalog::Model> model, const Uuid& instance,
                             std::function<void(Result<residency::PreparedLaunch>)> done) {
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
          prepared.spec.oom_score_adj = kWorkerOomScore;
          if (*log) {
            prepared.spec.output = std::move((*log)->output);
            logs_[model->name] = {(*log)->path, (*log)->start};
          } else {
            logs_.erase(model->name);
            parts_.events.emit_typed(
                events::LogUnwritable{.model = model->name, .problem = log->error().message});
          }
          done(std::move(prepared));
        });
      });
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
