#include "tests/simulation/sim_world.h"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/log/python_traceback.h"
#include "supervisor/residency/residency.h"

namespace berth::sim {

residency::Environment SimWorld::environment() {
  return {
      clock,
      ids,
      workers,
      workers,
      store,
      events,
      [this](const std::shared_ptr<const catalog::Model>& model, const Uuid& instance,
             const residency::LaunchPlan& plan,
             std::function<void(Result<residency::PreparedLaunch>)> done) {
        memory.admitted(instance.to_string(), plan.at);
        if (on_admit) on_admit(model->name, instance.to_string(), plan);
        workers.prepare_launch(model, instance, std::move(done));
      },
      [this](const std::string& model, const Uuid& instance,
             std::function<void(std::vector<std::string>)> done) {
        workers.log_tail(model, instance, std::move(done));
      },
      "5170c3ae-0000-4000-8000-000000000000",
      [this](const catalog::Model& model) {
        core::Provenance provenance;
        provenance.runtime = "simulated";
        provenance.window = model.served_context;
        provenance.files.emplace().push_back({model.path, model.file_bytes, 0, model.header_hash});
        provenance.program = program;
        return provenance;
      },
      [this] {
        return std::vector<core::DomainNow>{{"host", free_memory, std::nullopt}};
      },
      [this](pid_t pid, std::uint64_t /*start_ticks*/, const UniqueFd& /*log*/) {
        return workers.watch_tree(pid);
      },
      &logs,
      find_model ? [this](const std::string& name) { return find_model(name); }
                 : residency::FindModel(),
      [this](pid_t pid, std::function<void(bool)> done) {
        workers.oom_killed(pid, std::move(done));
      },
      [this] { ++standing_met; },
      {},
      memory.access(),
      &meter,
      [this] { return configured_pins; }};
}

std::shared_ptr<catalog::Model> make_model(std::string name) {
  auto model = std::make_shared<catalog::Model>();
  model->path = "/models/" + name + ".gguf";
  model->shards = {model->path};
  model->name = std::move(name);
  model->architecture = "llama";
  model->can_chat = true;
  model->declared_context = 4096;
  model->served_context = 4096;
  model->settings.ttl = std::chrono::minutes(30);
  model->settings.fatal_exceptions = core::default_fatal_exceptions();
  model->settings.load_timeout = std::chrono::minutes(30);
  return model;
}

}  // namespace berth::sim
