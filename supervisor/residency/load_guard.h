#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "supervisor/core/stall.h"
#include "supervisor/residency/tree_sampler.h"

namespace berth::residency {

// Watches that a load moves (L8): looks at the process tree every second, and says once when
// nothing has moved for too long. Core strand; lives for one load, from the launch to ready or
// failed. A sampler that does not answer ends the watch: then load_timeout bounds the load.
class LoadGuard {
 public:
  using OnStall = std::function<void(std::string reason)>;

  // `on_stall` may destroy the guard.
  LoadGuard(Clock& clock, const core::StallPolicy& policy, std::unique_ptr<TreeSampler> sampler,
            OnStall on_stall);
  LoadGuard(const LoadGuard&) = delete;
  LoadGuard& operator=(const LoadGuard&) = delete;
  ~LoadGuard() = default;

  // The worker said something new of its load.
  void note_progress() { ++progress_; }
  // A request of our own to the worker begins or ends, which it may log.
  void note_own_request() { ++own_requests_; }
  // What such a request saw: part of the reason of a stall.
  void note_probe(std::string_view saw) { last_probe_ = saw; }

 private:
  void wait();
  void look();
  void on_sample(const std::optional<core::TreeSample>& sample);

  Clock& clock_;
  core::StallWatch watch_;
  const OnStall on_stall_;
  std::uint64_t progress_ = 0;
  std::uint64_t own_requests_ = 0;
  std::string last_probe_;
  Timer timer_;
  std::unique_ptr<TreeSampler> sampler_;
};

}  // namespace berth::residency
