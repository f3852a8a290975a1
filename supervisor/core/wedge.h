#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"

namespace berth::core {

struct WedgePolicy {
  // wedge_after where nothing else is configured: the larger of these two (L9).
  Duration least = std::chrono::seconds(120);
  std::uint32_t batches = 4;  // times the predicted time of one batch
  // Set by the operator; 0: wedge detection is off.
  std::optional<Duration> fixed;
  // A worker with a request beats once a second. One that has not for so long may be frozen,
  // whatever it said before.
  Duration longest_silence = std::chrono::seconds(10);
  // As StallPolicy::longest_step.
  Duration longest_step = std::chrono::seconds(5);
};

// What a worker says of its work.
struct WorkPulse {
  std::uint64_t progress = 0;
  std::uint32_t active = 0;
  std::uint32_t waiting = 0;
  std::uint32_t paused = 0;  // of the active, how many wait for their clients
};

// Decides whether a ready worker is wedged (L9): its progress counter stands still while work is in
// flight that does not wait for its client. A worker that has fallen silent in the midst of work
// stands still too. Pure; one per worker with a counter, told of every heartbeat and asked about
// once a second.
class WedgeWatch {
 public:
  WedgeWatch(const WedgePolicy& policy, SteadyTime begin) : policy_(policy), now_(begin) {}

  // How long a batch of the worker takes, as predicted; counts from now on.
  void expect_batch(Duration predicted) { batch_ = predicted; }

  void on_pulse(const WorkPulse& pulse, SteadyTime now);
  // Lets time pass. `requests`: calls that are open on the worker, as its caller knows; with none,
  // what the worker last said of its work is out of date.
  void on_time(std::uint32_t requests, SteadyTime now);

  [[nodiscard]] std::optional<Duration> wedge_after() const;  // absent: never
  // How long work stands still, as far as it was watched.
  [[nodiscard]] Duration still_for() const { return still_; }
  [[nodiscard]] bool wedged() const;
  // "its progress stood still for 2 min with 3 requests in flight"; at most 120 bytes.
  [[nodiscard]] std::string reason() const;

 private:
  void pass(SteadyTime now);

  WedgePolicy policy_;
  SteadyTime now_;
  Duration batch_{};
  Duration still_{};
  Duration silent_{};  // with requests
  WorkPulse pulse_;
  bool heard_ = false;
  std::uint32_t requests_ = 0;
};

}  // namespace berth::core
