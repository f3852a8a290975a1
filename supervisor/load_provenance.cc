#include "supervisor/load_provenance.h"

#include <chrono>
#include <string>
#include <utility>

#include "common/uuid.h"
#include "common/version.h"
#include "supervisor/command_launch.h"
#include "supervisor/worker_command.h"

namespace berth {

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
    provenance.launch_hash =
        core::launch_hash(open.argv, hashed_environment(settings, open), settings.chat_template);
  } else {
    provenance.launch_hash =
        core::launch_hash(worker_arguments("berth-worker", model, Uuid(), "{socket}"),
                          worker_environment(environment, settings), settings.chat_template);
  }
  return provenance;
}

}  // namespace berth
