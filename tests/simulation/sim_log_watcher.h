#pragma once

#include <memory>
#include <string>
#include <vector>

#include "supervisor/process/log_watch.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_workers.h"

namespace berth::sim {

// Where the log of an instance is said to be.
process::LogPlace log_place_of(const std::string& instance);

// Watches what simulated workers print, with the real parser: what is printed is looked at when it
// is printed, on threads of the watcher's own. Simulation thread.
class SimLogWatcher : public process::LogWatcher {
 public:
  SimLogWatcher(SimClock& clock, const SimWorkers& workers) : clock_(clock), workers_(workers) {}

  std::unique_ptr<process::LogWatch> watch(process::LogPlace place,
                                           std::vector<std::string> fatal_exceptions,
                                           OnVerdict on_verdict) override;

 private:
  class Watch;

  SimClock& clock_;
  const SimWorkers& workers_;
};

}  // namespace berth::sim
