#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>

#include "common/fd.h"

namespace berth::cli {

// What a signal asks for.
enum class Caught : std::uint8_t {
  kNone,
  kInterrupt,  // Ctrl-C
  kTerminate,  // SIGTERM, or the terminal went away
};

// Ctrl-C and its like as events. One thread.
class Interrupts {
 public:
  // What a second Ctrl-C within the same work does: the first one has stopped the work already.
  enum class Again : std::uint8_t { kEndsProgram, kIsIgnored };

  Interrupts() = default;
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  virtual ~Interrupts() = default;

  // From now on signals end the work that is in progress and no more the program; but a second
  // SIGTERM or SIGHUP ends it at any time. To be called when nothing is waited for that they should
  // end, such as a connection.
  virtual void take_over(Again again) = 0;

  // Does `work` on this thread; a signal stops its token. Returns the first signal that came.
  virtual Caught during(const std::function<void(const std::stop_token&)>& work) = 0;

  // Readable when a signal is waiting for next(); -1 where there are none.
  [[nodiscard]] virtual int fd() const = 0;
  // The next signal's number, if one is waiting: SIGINT, SIGTERM, SIGHUP, SIGTSTP or SIGWINCH.
  virtual std::optional<int> next() = 0;
};

// The process's own signals, whatever threads it has: handlers that write to a pipe. At most one of
// it, which lives as long as the process.
class SignalInterrupts : public Interrupts {
 public:
  void take_over(Again again) override;
  Caught during(const std::function<void(const std::stop_token&)>& work) override;
  [[nodiscard]] int fd() const override { return signals_.get(); }
  std::optional<int> next() override;

  // The signal that during() caught last; SIGINT where it caught none.
  [[nodiscard]] int caught_signal() const { return caught_signal_; }

 private:
  UniqueFd signals_;  // the pipe's end to read
  Again again_ = Again::kEndsProgram;
  std::atomic<int> caught_signal_{SIGINT};
};

// Ends this process as the signal would have, had nobody taken it over.
[[noreturn]] void end_by_signal(int signal);

}  // namespace berth::cli
