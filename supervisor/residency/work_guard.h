#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/clock.h"
#include "supervisor/core/wedge.h"

namespace berth::residency {

// Watches that a ready worker's work gets on (L9): as long as there are requests it lets time pass
// for them every second, and says once when they stand still for too long. Core strand; lives from
// ready to the stop of the worker.
class WorkGuard {
 public:
  using OnWedge = std::function<void(std::string reason)>;

  // `on_wedge` may destroy the guard.
  WorkGuard(Clock& clock, const core::WedgePolicy& policy, OnWedge on_wedge)
      : clock_(clock), watch_(policy, clock.now()), on_wedge_(std::move(on_wedge)) {}
  WorkGuard(const WorkGuard&) = delete;
  WorkGuard& operator=(const WorkGuard&) = delete;
  ~WorkGuard() = default;

  void on_pulse(const core::WorkPulse& pulse) { watch_.on_pulse(pulse, clock_.now()); }
  // How many requests are on it from now on.
  void set_requests(std::uint32_t requests);

 private:
  void wait();
  void look();

  Clock& clock_;
  core::WedgeWatch watch_;
  const OnWedge on_wedge_;
  std::uint32_t requests_ = 0;
  Timer timer_;
};

}  // namespace berth::residency
