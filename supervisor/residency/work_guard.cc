#include "supervisor/residency/work_guard.h"

#include <chrono>

#include "common/clock.h"

namespace berth::residency {
namespace {

constexpr Duration kLook = std::chrono::seconds(1);

}  // namespace

void WorkGuard::set_requests(std::uint32_t requests) {
  const bool watched = requests_ > 0;
  // What went before counts for those that were there.
  watch_.on_time(requests_, clock_.now());
  requests_ = requests;
  watch_.on_time(requests_, clock_.now());
  if (requests_ == 0) {
    timer_.reset();
  } else if (!watched) {
    wait();
  }
}

void WorkGuard::wait() {
  timer_ = clock_.sleep_for(kLook, [this] { look(); });
}

void WorkGuard::look() {
  watch_.on_time(requests_, clock_.now());
  if (!watch_.wedged()) {
    wait();
    return;
  }
  const OnWedge on_wedge = on_wedge_;
  on_wedge(watch_.reason());
}

}  // namespace berth::residency
