#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace berth {

// Three clocks, three types, so that they cannot be mixed up.

// CLOCK_MONOTONIC: deadlines and durations. Stands still while the machine is suspended.
struct SteadyClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyClock>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming)
};
using SteadyTime = SteadyClock::time_point;

// CLOCK_BOOTTIME: TTLs and ages. Goes on while the machine is suspended.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming)
};
using BootTime = BootClock::time_point;

// CLOCK_REALTIME: only for records and people.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

using Duration = std::chrono::nanoseconds;

// A callback that is due at a time. Destroying or resetting it cancels the callback, also from
// within the callback. Core strand only.
class Timer {
 public:
  class Impl {
   public:
    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    virtual ~Impl() = default;  // cancels
  };

  Timer() = default;
  explicit Timer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
  void reset() { impl_.reset(); }
  [[nodiscard]] bool armed() const { return impl_ != nullptr; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Time and the core strand: everything that the supervisor's state machines know of both. The real
// one (AsioClock) lives in process/; tests run the same code under SimClock, where time moves only
// when nothing is left to do.
//
// now(), boot_now() and wall_now() may be called from any thread; sleep_until() from the core
// strand only; post() from any thread.
class Clock {
 public:
  using Callback = std::function<void()>;

  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  [[nodiscard]] virtual SteadyTime now() const = 0;
  [[nodiscard]] virtual BootTime boot_now() const = 0;
  [[nodiscard]] virtual WallTime wall_now() const = 0;

  // Calls `callback` once on the core strand, at `when` or later, never from within this call.
  [[nodiscard]] virtual Timer sleep_until(SteadyTime when, Callback callback) = 0;
  [[nodiscard]] Timer sleep_for(Duration duration, Callback callback) {
    return sleep_until(now() + duration, std::move(callback));
  }

  // Calls `callback` on the core strand, never from within this call. Callbacks run in the order
  // in which one thread posted them.
  virtual void post(Callback callback) = 0;
};

}  // namespace berth
