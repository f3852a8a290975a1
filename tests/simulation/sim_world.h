#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/provenance.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_ids.h"
#include "tests/simulation/sim_log_watcher.h"
#include "tests/simulation/sim_memory.h"
#include "tests/simulation/sim_meter.h"
#include "tests/simulation/sim_store.h"
#include "tests/simulation/sim_workers.h"

namespace berth::sim {

// A supervisor's whole world in one thread: time, processes, store, events. For simulations and for
// unit tests of what stands on the residency.
struct SimWorld {
  explicit SimWorld(std::uint64_t seed = 1) : clock(seed) {}
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;
  ~SimWorld() = default;

  [[nodiscard]] residency::Environment environment();

  SimClock clock;
  SimIds ids{clock};
  SimEvents events{clock};
  SimStore store{clock};
  SimWorkers workers{clock};
  SimLogWatcher logs{clock, workers};
  SimMemory memory{clock, workers};
  SimMeter meter;
  // Called when an instance was made.
  std::function<void(const std::string& model, const std::string& instance,
                     const residency::LaunchPlan& plan)>
      on_admit;
  // The catalogue, if there is one when the environment is made.
  residency::FindModel find_model;
  std::vector<std::shared_ptr<const catalog::Model>> configured_pins;
  std::optional<std::vector<core::ProgramFile>> program;  // of every model's provenance
  int standing_met = 0;                                   // requests that a failure refused
  std::uint64_t free_memory = 8ULL << 30U;                // of the host, bytes
};

// A model that can be served, with a ttl of 30 min and a load_timeout of 30 min.
std::shared_ptr<catalog::Model> make_model(std::string name);

}  // namespace berth::sim
