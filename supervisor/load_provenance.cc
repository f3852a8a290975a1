#include "supervisor/load_provenance.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "common/version.h"
#include "supervisor/command_launch.h"
#include "supervisor/worker_command.h"

namespace berth {
namespace {

std::string count_of(Duration duration) {
  return std::to_string(duration.count());
}

// What decides whether a load fails, and is in no argument of it.
std::vector<std::string> deciding_settings(const catalog::Model& model) {
  const catalog::ModelSettings& settings = model.settings;
  std::vector<std::string> deciding = {"load_timeout=" + count_of(settings.load_timeout)};
  if (settings.load_stall) deciding.push_back("load_stall=" + count_of(*settings.load_stall));
  for (const std::string& exception : settings.fatal_exceptions) {
    deciding.push_back("fatal_exception=" + exception);
  }
  if (settings.kind == catalog::Kind::kCommand) {
    deciding.push_back("directory=" + settings.directory);
    deciding.push_back("probe=" + settings.probe);
  }
  if (model.companions_stamp != 0) {
    deciding.push_back("companions=" + std::to_string(model.companions_stamp));
  }
  return deciding;
}

}  // namespace

core::Provenance load_provenance(const catalog::Model& model,
                                 const std::vector<std::string>& environment,
                                 const std::vector<core::ProgramFile>* program,
                                 const DeviceDrivers& drivers) {
  const catalog::ModelSettings& settings = model.settings;
  core::Provenance provenance;
  provenance.runtime = std::string(kBuildId) + ", libllama " BERTH_LLAMA_VERSION;
  provenance.files.emplace();
  for (const std::string& path : model.shards) {
    core::FileIdentity file;
    file.path = path;
    if (provenance.files->empty()) {
      file.size = model.file_bytes;
      file.modified_ns = std::chrono::nanoseconds(model.modified.time_since_epoch()).count();
      file.header_hash = model.header_hash;
    }
    provenance.files->push_back(std::move(file));
  }
  provenance.sequences = settings.sequences;
  provenance.window = model.served_context;
  provenance.kv_types = core::KvTypes{settings.kv_type, settings.kv_type};
  provenance.devices.emplace();
  if (settings.gpu_layers != 0) {
    for (const std::string& device : settings.devices) {
      provenance.devices->push_back({device, drivers.of(device)});
    }
  }
  // Without what differs from run to run: the instance, its socket, its port and its key.
  if (settings.kind == catalog::Kind::kCommand) {
    if (program != nullptr) provenance.program = *program;
    const CommandTemplate open = command_template(settings, environment);
    provenance.launch_hash = core::launch_hash(open.argv, hashed_environment(settings, open),
                                               settings.chat_template, deciding_settings(model));
  } else {
    // As configured: where a plan puts it, and with which window, is no change of the model.
    const WorkerPlace place = configured_place(model);
    provenance.launch_hash = core::launch_hash(
        worker_arguments("berth-worker", model, place, Uuid(), "{socket}"),
        worker_environment(environment, place), settings.chat_template, deciding_settings(model));
  }
  return provenance;
}

}  // namespace berth
