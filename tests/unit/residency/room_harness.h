#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/memory/domain.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {

// A machine with 1,000 MiB for models in the host and as much on a device, and models that need a
// part of them. Foreign use is nil and limits are those budgets.
class RoomTest : public ResidencyTest {
 protected:
  static constexpr std::uint64_t kMiB = 1ULL << 20U;
  static constexpr core::DomainIndex kDevice = 1;

  RoomTest() {
    world_.memory.domains = {
        {.id = "host", .device = {}, .total = 8000 * kMiB, .budget = 1000 * kMiB},
        {.id = "gpu", .device = "SIM0", .total = 8000 * kMiB, .budget = 1000 * kMiB}};
    world_.workers.set_script([this](const std::string& model) { return scripts_[model]; });
    restart();
  }

  // After `limits_` or what the world can do has been changed.
  void restart() { residency_ = std::make_unique<Residency>(world_.environment(), limits_); }

  std::shared_ptr<catalog::Model> host_model(const std::string& name, std::uint64_t mib) {
    world_.memory.needs[name] = {{.bytes = core::DomainBytes::in(core::kHostDomain, mib * kMiB)}};
    return sim::make_model(name);
  }
  std::shared_ptr<catalog::Model> device_model(const std::string& name, std::uint64_t mib) {
    core::PlacementOption on;
    on.placement.shares = {{kDevice, 32}};
    on.bytes = core::DomainBytes::in(kDevice, mib * kMiB);
    world_.memory.needs[name] = {on};
    return sim::make_model(name);
  }
  // Loaded, and used by nobody.
  void resident(const std::shared_ptr<catalog::Model>& model) {
    served(model)->lease = {};
    world_.clock.settle();
  }
  void set_foreign(std::size_t domain, std::uint64_t mib) {
    world_.memory.domains[domain].foreign = mib * kMiB;
    residency_->memory_changed();
  }
  [[nodiscard]] std::string state_of(const std::string& model) const {
    return residency_->state_of(model);
  }
  [[nodiscard]] std::string last(std::string_view event, std::string_view field) const {
    const Event* const found = world_.events.last(event);
    return found == nullptr ? "" : sim::SimEvents::field(*found, field);
  }
  // Whose process was started, in that order.
  [[nodiscard]] std::string loads() const {
    std::string all;
    for (const Event& event : world_.events.all()) {
      if (event.name == "load.started") all += sim::SimEvents::field(event, "model");
    }
    return all;
  }

  Limits limits_;
  std::map<std::string, sim::WorkerScript> scripts_;
};

}  // namespace berth::residency
