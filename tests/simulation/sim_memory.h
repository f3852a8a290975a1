#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/uuid.h"
#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/placement.h"
#include "supervisor/core/memory/snapshot.h"
#include "supervisor/residency/memory_access.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_workers.h"

namespace berth::sim {

// The simulated machine's memory: its domains, what models need of them, and what processes hold,
// which may come back a while after their end. Domain 0 is the host, of which nothing independent
// is known of one process; the others are devices whose drivers tell. Simulation thread.
class SimMemory {
 public:
  SimMemory(SimClock& clock, const SimWorkers& workers) : clock_(clock), workers_(workers) {}
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;
  ~SimMemory() = default;

  // As Environment::memory_access; without domains everything fits.
  [[nodiscard]] residency::MemoryAccess access();
  // An instance was admitted there.
  void admitted(const std::string& instance, const core::PlacementOption& at) {
    placed_[instance] = at;
  }
  // It turned out to hold that much.
  void measured(const std::string& instance, const core::DomainBytes& bytes) {
    placed_[instance].bytes = bytes;
  }
  // What the process of that instance holds now: nothing before it was started.
  [[nodiscard]] core::DomainBytes held_by(const SimWorker& worker) const;
  // The domains with what processes that are gone have not given back: nobody's, so it is foreign.
  [[nodiscard]] core::Domains now() const;
  // Where it was put.
  [[nodiscard]] const core::PlacementOption* placed(const std::string& instance) const;

  core::Domains domains{};
  std::map<std::string, std::vector<core::PlacementOption>> needs{};  // by model
  // Of a model that takes more where no other one is there (M6), instead of `needs`.
  std::map<std::string, std::vector<core::PlacementOption>> needs_alone{};
  // Of a model whose device is not there.
  std::map<std::string, std::string> device_problems{};
  std::optional<WouldFit> would_fit{};  // of what never fits
  Duration sample_takes{};
  bool sample_never_comes = false;
  // Kept sessions; a request to shrink is done after `shrink_takes`, and `changed` is called.
  core::DomainBytes bank{};
  Duration shrink_takes{};
  std::function<void()> changed{};
  [[nodiscard]] bool shrinking() const { return shrink_.armed(); }
  // Idle work, and what tells it to yield.
  std::function<std::vector<core::IdleJob>()> jobs{};
  std::function<void(const std::vector<Uuid>&)> yield_jobs{};
  // Whether the files of a model turn out to be fit to be loaded.
  std::function<bool(const std::string& model)> files_are_sane{};

 private:
  void sample(std::function<void()> done);
  void shrink_bank(const core::DomainBytes& keep);
  [[nodiscard]] std::vector<residency::DeviceUse> device_use(pid_t pid) const;

  SimClock& clock_;
  const SimWorkers& workers_;
  std::map<std::string, core::PlacementOption> placed_;  // by instance
  SteadyTime sampled_{};
  core::DomainBytes keep_{};  // that the bank is to have at most
  Timer shrink_;
};

}  // namespace berth::sim
