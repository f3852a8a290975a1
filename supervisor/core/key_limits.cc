#include "supervisor/core/key_limits.h"

#include <algorithm>
#include <chrono>

namespace berth::core {
namespace {

// What runs ends at a time that nobody knows.
constexpr double kRetryWhenBusy = 1;

tl::unexpected<Error> limited(std::string message, double retry_after_seconds) {
  ErrorExtras extras;
  extras.retry_after_seconds = retry_after_seconds;
  return fail(Error(Reason::kRateLimited, std::move(message), std::move(extras)));
}

}  // namespace

Result<KeyPermit> KeyLimits::admit(const Caller& caller, SteadyTime now) {
  if (caller.key.empty()) return KeyPermit();
  if (uses_.size() >= forget_at_) forget_idle(now);
  Use& use = uses_[caller.key];
  const std::uint32_t running = *use.running;
  if (rates_.concurrency != 0 && running >= rates_.concurrency) {
    return limited("The key " + caller.key + " has " + std::to_string(running) +
                       " requests waiting or running, and may have " +
                       std::to_string(rates_.concurrency) + "; try again when one has ended.",
                   kRetryWhenBusy);
  }
  if (rates_.requests_per_minute != 0) {
    const Duration minute = std::chrono::minutes(1);
    const Duration each = minute / rates_.requests_per_minute;
    // One request more must not make it take longer than a minute until the bucket is full. A limit
    // that was lowered leaves a bucket that is deeper than it may be now.
    const SteadyTime full = std::clamp(use.full, now, now + minute) + each;
    if (full - now > minute) {
      const Duration wait = full - now - minute;
      return limited("The key " + caller.key + " has made the " +
                         std::to_string(rates_.requests_per_minute) +
                         " requests that it may make in a minute; try again later.",
                     std::chrono::duration<double>(wait).count());
    }
    use.full = full;
  }
  return KeyPermit(use.running);
}

void KeyLimits::forget_idle(SteadyTime now) {
  std::erase_if(uses_, [&](const auto& entry) {
    return *entry.second.running == 0 && entry.second.full <= now;
  });
  // Not with every request, where all of them are in use.
  forget_at_ = std::max<std::size_t>(64, 2 * uses_.size());
}

}  // namespace berth::core
