#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/clock.h"

namespace berth::sim {

// Simulated time and the core strand in one thread. Time jumps to the next timer, and only when
// nothing is left to run. What one thread posted runs in its order; between threads (sources) and
// timers that are due together there is no order, so the seed chooses. Timers may outlive it.
class SimClock : public Clock {
 public:
  explicit SimClock(std::uint64_t seed = 1);
  ~SimClock() override;

  [[nodiscard]] SteadyTime now() const override;
  [[nodiscard]] BootTime boot_now() const override;
  [[nodiscard]] WallTime wall_now() const override;
  [[nodiscard]] Timer sleep_until(SteadyTime when, Callback callback) override;
  void post(Callback callback) override;

  // What another thread posts: `source` names it.
  void post_from(const std::string& source, Callback callback);

  // Runs one callback that may run now, if there is one.
  bool run_one();
  // Runs until nothing is left to do now.
  void settle();
  // Time passes; all that becomes due on the way runs. What is due at the end has run too.
  void advance(Duration duration);
  // Lets time pass until the condition holds, at most that long. Whether it holds.
  bool run_until(const std::function<bool()>& condition, Duration at_most);
  // Jumps to the next timer (nothing may be left to run), but not beyond `limit`.
  void jump(SteadyTime limit);
  // The machine sleeps: the boot clock and the wall clock go on alone.
  void suspend(Duration duration);

  // Nothing runs any more.
  void stop();
  [[nodiscard]] bool idle() const;  // nothing is left to run now
  [[nodiscard]] std::optional<SteadyTime> next_timer() const;
  // Called after every callback.
  void on_step(std::function<void()> hook);
  // Changes with everything that ran: equal runs have equal marks.
  [[nodiscard]] std::uint64_t fingerprint() const;

 private:
  struct State;
  class SimTimer;
  std::shared_ptr<State> state_;
};

}  // namespace berth::sim
