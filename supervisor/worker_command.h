#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/uuid.h"
#include "supervisor/catalog/model.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/residency/memory_access.h"

namespace berth {

// How a worker is started: the one place that turns a model's settings into a command line, for
// every path that loads a model (T90).

// Where an instance listens: below `run_dir`, in a folder that only berth may enter.
std::string worker_socket(const std::string& run_dir, const Uuid& instance);
// The folder of these sockets.
std::string worker_directory(const std::string& run_dir);
// Bytes that worker_socket() adds to run_dir.
std::size_t worker_socket_suffix_bytes();

// Where a worker puts its model, and with which window.
struct WorkerPlace {
  std::uint32_t window = 0;                      // tokens
  std::vector<std::string> devices{};            // by libllama's names; empty: the processor
  std::optional<std::uint32_t> device_layers{};  // on all of them; absent: all
  std::vector<std::uint32_t> split{};            // layers on each device; empty: as libllama likes

  bool operator==(const WorkerPlace&) const = default;
};

// As the settings say; devices by the configuration's names.
WorkerPlace configured_place(const catalog::Model& model);
// As the plan says. Where it says nothing, as the settings do. A device that `table` does not know
// keeps the configuration's name, so that the load fails and names it (T71).
WorkerPlace planned_place(const catalog::Model& model, const residency::LaunchPlan& plan,
                          const core::DomainTable& table);

// argv of berth-worker at `program` for one instance.
std::vector<std::string> worker_arguments(const std::string& program, const catalog::Model& model,
                                          const WorkerPlace& place, const Uuid& instance,
                                          const std::string& socket);

// Further ones for its first load under a provenance (L6).
std::vector<std::string> first_load_arguments();

// Its whole environment, made from berthd's own `environment`: memory::device_environment().
std::vector<std::string> worker_environment(const std::vector<std::string>& environment,
                                            const WorkerPlace& place);

}  // namespace berth
