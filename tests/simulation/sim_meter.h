#pragma once

#include <functional>
#include <map>
#include <optional>

#include "common/uuid.h"
#include "supervisor/residency/load_meter.h"

namespace berth::sim {

// Measures simulated loads as it is told. Simulation thread.
class SimMeter final : public residency::LoadMeter {
 public:
  void launched(const residency::MeteredLoad& load) override { loads_[load.instance] = load; }
  std::optional<residency::MeasuredCharge> loaded(const Uuid& instance,
                                                  const rpc::WorkerReady& /*ready*/) override {
    const auto load = loads_.find(instance);
    if (load == loads_.end() || !measure) return std::nullopt;
    return measure(load->second);
  }
  void failed(const Uuid& instance, core::FailureRecord& record) override {
    if (loads_.contains(instance) && on_failed) on_failed(record);
  }
  void gone(const Uuid& instance) override { loads_.erase(instance); }

  // Those whose processes are there, by instance.
  [[nodiscard]] const std::map<Uuid, residency::MeteredLoad>& loads() const { return loads_; }
  std::function<std::optional<residency::MeasuredCharge>(const residency::MeteredLoad& load)>
      measure;
  std::function<void(core::FailureRecord& record)> on_failed;

 private:
  std::map<Uuid, residency::MeteredLoad> loads_;
};

}  // namespace berth::sim
