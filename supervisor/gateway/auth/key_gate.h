#pragma once

#include <mutex>

#include "common/clock.h"
#include "common/result.h"
#include "supervisor/core/caller.h"
#include "supervisor/core/key_limits.h"

namespace berth::gateway {

// The limits of all keys, as the doors ask for them: as soon as a request's caller is known, once,
// and before anything else is done for it. Any thread; lives longer than the fronts.
class KeyGate {
 public:
  explicit KeyGate(Clock& clock) : clock_(clock) {}

  // As core::KeyLimits.
  void set(core::KeyRates rates) {
    const std::lock_guard lock(mutex_);
    limits_.set(rates);
  }
  Result<core::KeyPermit> admit(const core::Caller& caller) {
    if (caller.key.empty()) return core::KeyPermit();
    const std::lock_guard lock(mutex_);
    return limits_.admit(caller, clock_.now());
  }

 private:
  Clock& clock_;
  std::mutex mutex_;  // held for a look at one key
  core::KeyLimits limits_;
};

}  // namespace berth::gateway
