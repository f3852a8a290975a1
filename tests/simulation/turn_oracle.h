#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/simulation/sim_clock.h"
#include "tests/simulation/sim_request.h"

namespace berth::sim {

// Judges from the clients alone whose turn it was (M13): while a tenant waits for a model, each
// other one is served there once at most; within one the oldest comes first; and idle work after
// all of them. Where an answer may be on its way, it is lenient. Each look says what is wrong;
// empty: nothing.
class TurnOracle {
 public:
  using Requests = std::vector<std::unique_ptr<SimRequest>>;

  TurnOracle(const SimClock& clock, const Requests& requests)
      : clock_(clock), requests_(requests) {}

  void on_admit(const std::string& instance) { created_[instance] = clock_.now(); }
  // Its load failed, or it is unloaded by force: who waited for it does not any more.
  void on_break(const std::string& model) { served_.erase(model); }
  // A request waits or holds no more; called just before.
  void on_leaves(const SimRequest& request);
  // A request got its place.
  [[nodiscard]] std::string on_served(const SimRequest& request);

 private:
  // It is surely in the queue, from which the place on that instance was given.
  [[nodiscard]] bool queues(const SimRequest& request, const std::string& instance) const;

  const SimClock& clock_;
  const Requests& requests_;
  std::map<std::string, SteadyTime> created_;  // by instance
  // How often another tenant was served while one waits: by model, the one that waits, the other.
  std::map<std::string, std::map<std::string, std::map<std::string, int>>> served_;
};

}  // namespace berth::sim
