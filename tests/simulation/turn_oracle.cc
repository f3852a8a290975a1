#include "tests/simulation/turn_oracle.h"

#include <chrono>
#include <set>
#include <string>

#include "common/clock.h"
#include "supervisor/residency/residency.h"
#include "tests/simulation/scenario_times.h"

namespace berth::sim {
namespace {

bool is_client(const SimRequest& request) {
  return request.request_class() != residency::RequestClass::kIdle;
}

}  // namespace

bool TurnOracle::queues(const SimRequest& request, const std::string& instance) const {
  const SteadyTime now = clock_.now();
  if (request.state() != SimRequest::State::kWaiting || !is_client(request)) return false;
  if (request.since() >= now || request.deadline() <= now) return false;
  // It may have waited for another one that failed, and wait for the evidence of that.
  const auto created = created_.find(instance);
  if (created == created_.end()) return false;
  return request.since() > created->second || now > created->second + kEvidence;
}

// Its place may have been on its way, so that its tenant has had its turn; or it comes anew.
void TurnOracle::on_leaves(const SimRequest& request) {
  if (request.state() == SimRequest::State::kWaiting) {
    served_[request.model()].erase(request.tenant());
  }
}

std::string TurnOracle::on_served(const SimRequest& request) {
  const std::string instance = request.held_instance();
  std::map<std::string, std::map<std::string, int>>& waiting = served_[request.model()];
  std::set<std::string> tenants;
  for (const auto& other : requests_) {
    if (other->model() != request.model() || !queues(*other, instance)) continue;
    if (!is_client(request)) return "idle work is served on " + request.model() + " before clients";
    if (other->tenant() != request.tenant()) {
      tenants.insert(other->tenant());
    } else if (other->since() < request.since()) {
      const std::chrono::duration<double> by = request.since() - other->since();
      return "a request for " + request.model() + " is served before one of " + request.tenant() +
             " that is older by " + std::to_string(by.count()) + " s";
    }
  }
  for (const std::string& tenant : tenants) {
    if (++waiting[tenant][request.tenant()] > 1) {
      return request.tenant() + " has two turns on " + request.model() + " while " + tenant +
             " waits";
    }
  }
  if (is_client(request)) waiting.erase(request.tenant());
  return {};
}

}  // namespace berth::sim
