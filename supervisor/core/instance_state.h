#pragma once

#include <cstdint>
#include <string_view>

namespace berth::core {

// The actual state of an instance (spec 1, 'Life of an instance').
enum class InstanceState : std::uint8_t {
  kAbsent,    // no instance
  kStarting,  // its process is being made and does not listen yet
  kLoading,   // it listens and loads
  kReady,
  kBusy,      // ready, with leases
  kClosing,   // what runs is finished, nothing new begins
  kDraining,  // is being stopped: what runs was cancelled and is awaited for a moment
  kStopping,  // was sent a signal
  kStuck,     // was killed and does not go
  kFailed,    // gone without having been ready
  kGone,
};

struct InstanceStateInfo {
  std::string_view name;
  bool charged;  // its memory counts (L2)
  bool leases;   // requests may run on it
  std::string_view sentence;
};

// The row of the table. Never fails.
const InstanceStateInfo& info(InstanceState state);

// Nothing of it is left in the machine.
inline bool is_terminal(InstanceState state) {
  return state == InstanceState::kFailed || state == InstanceState::kGone;
}
// What the supervisor wants of an instance.
enum class Wanted : std::uint8_t { kReady, kGone };

// What is being done to bring it there.
enum class InstanceJob : std::uint8_t { kNone, kLoad, kClose, kStop };

// How the last job, or the instance's life, ended.
enum class InstanceResult : std::uint8_t {
  kNone,
  kReady,
  kFailedOwn,          // failed by itself
  kFailedLaunch,       // no process came to be
  kFailedInterrupted,  // ended by us before it was ready; leaves no mark (L20)
  kDied,               // ended by itself after it was ready
  kStopped,            // ended by us after it was ready
};
// As the store's LoadRecord::outcome: "loading" for kNone, "failed", "interrupted", …
std::string_view outcome_name(InstanceResult result);

// Who ordered a stop, and why.
enum class StopCause : std::uint8_t {
  kNone,
  kUnload,
  kForcedUnload,
  kIdle,  // ttl (M15)
  kShutdown,
  kLoadFailed,    // the worker said so
  kLoadTimeout,   // L7
  kDisconnected,  // its control stream ended and its process went on
  kStalled,       // nothing moved in its load (L8)
  kWedged,        // its work stood still (L9)
  kEvicted,       // another model needs its memory (M8, M12, L5)
  kJobEnded,      // idle work loaded it, and has ended (M15)
};
// "unload"
std::string_view stop_cause_name(StopCause cause);

}  // namespace berth::core
