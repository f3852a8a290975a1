#include "supervisor/rpc/deadline.h"

#include <algorithm>
#include <chrono>

namespace berth::rpc {

SteadyTime deadline_of(const grpc::CallbackServerContext& context, std::uint64_t asked_ms,
                       const Clock& clock) {
  constexpr Duration kLongest = std::chrono::hours(24);
  Duration left = kLongest;
  const auto now = std::chrono::system_clock::now();
  // "No deadline" is the end of time; a difference to it would overflow.
  if (context.deadline() < now + kLongest) {
    left = std::max(Duration(context.deadline() - now), Duration::zero());
  }
  constexpr auto kLongestMs = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(kLongest).count());
  if (asked_ms != 0 && asked_ms < kLongestMs) {
    left = std::min(left, Duration(std::chrono::milliseconds(asked_ms)));
  }
  return clock.now() + left;
}

}  // namespace berth::rpc
