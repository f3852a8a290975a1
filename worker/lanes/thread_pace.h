#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/clock.h"

namespace berth::worker {

// How many of the granted threads compute. They meet at a barrier after every step of the model's
// graph, some hundred times per token, and so all wait for the one whose core another process has:
// on two cores one busy process leaves two threads a fifth of their speed, but one thread three
// quarters. So where threads wait for cores, as many fewer compute, and from time to time one more
// is tried. Not thread-safe; no clock of its own.
class ThreadPace {
 public:
  using RunDelay = std::function<std::optional<Duration>()>;  // see run_delay_reader()

  // Time of computing that is judged at once.
  static constexpr double kWindowSeconds = 0.05;
  // Cores that threads waited for, as a mean over a window, from which fewer compute. Measured with
  // a model of 200M parameters on two cores: 0.04 to 0.08 alone, 0.87 to 1.04 beside one busy
  // process.
  static constexpr double kBusy = 0.4;
  // One more thread is tried after so long; twice as long after each try that failed.
  static constexpr Duration kFirstTry = std::chrono::milliseconds(200);
  static constexpr Duration kLastTry = std::chrono::milliseconds(6400);

  explicit ThreadPace(RunDelay delay) : delay_(std::move(delay)) {}

  // The most that may compute, at least 1.
  void grant(std::uint32_t threads);
  // A batch was computed from `began` to `ended`. The threads for the next ones, if they change.
  std::optional<std::uint32_t> add(SteadyTime began, SteadyTime ended);
  [[nodiscard]] std::uint32_t threads() const { return threads_; }

 private:
  void begin_window(std::optional<Duration> delay);
  void judge(double busy, SteadyTime now);
  void lower(double busy, SteadyTime now);

  RunDelay delay_;  // none where the kernel does not tell
  std::uint32_t granted_ = 1;
  std::uint32_t threads_ = 1;
  std::optional<Duration> delay_before_;  // at the window's beginning
  Duration computed_{};
  SteadyTime next_try_{};
  Duration try_after_ = kFirstTry;
  bool trying_ = false;  // this window is the first with one more
};

}  // namespace berth::worker
