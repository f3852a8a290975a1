#include "supervisor/residency/load_guard.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "supervisor/core/stall.h"

namespace berth::residency {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);

}  // namespace

LoadGuard::LoadGuard(Clock& clock, const core::StallPolicy& policy,
                     std::unique_ptr<TreeSampler> sampler, OnStall on_stall)
    : clock_(clock),
      watch_(policy, clock.now()),
      on_stall_(std::move(on_stall)),
      sampler_(std::move(sampler)) {
  wait();
}

void LoadGuard::wait() {
  timer_ = clock_.sleep_for(kLook, [this] { look(); });
}

void LoadGuard::look() {
  sampler_->sample([this](const std::optional<core::TreeSample>& sample) { on_sample(sample); });
}

void LoadGuard::on_sample(const std::optional<core::TreeSample>& sample) {
  if (sample) {
    core::TreeSample whole = *sample;
    whole.progress = progress_;
    whole.own_requests = own_requests_;
    watch_.feed(whole, clock_.now());
  }
  if (!watch_.stalled()) {
    wait();
    return;
  }
  const OnStall on_stall = on_stall_;
  std::string reason = watch_.reason();
  if (!last_probe_.empty()) reason += "; when last asked " + last_probe_;
  on_stall(std::move(reason));
}

}  // namespace berth::residency
