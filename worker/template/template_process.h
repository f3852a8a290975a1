#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "common/fd.h"
#include "common/result.h"
#include "worker/template/helper_reaper.h"

namespace berth::worker {

// What one call may take, beside the bounds that the program sets for itself (HelperLimits).
struct TemplateLimits {
  std::chrono::milliseconds wall{10000};  // for one that is stopped, or starved
};

// One berth-template process: starts it, carries frames there and back, and ends it. It dies with
// the thread that started it, which must be the only one that uses this object and must live as
// long as it is wanted. Where it dies between two calls, a thread that waits for that reaps it.
//
// Launched by posix_spawn: with the C library's vfork-like start nothing but its own
// async-signal-safe code runs in the child, no handlers of gRPC or of sanitizers, and a worker of
// many gigabytes is not copied. The rest of the confinement is the program's own first deed
// (confine_helper), before it reads anything.
class TemplateProcess {
 public:
  // Whether to give up; asked before each wait, at least about 20 times a second.
  using Abandoned = std::function<bool()>;

  // Returns once the program runs; takes about a millisecond.
  // Errors: kInternal, names the program and what the kernel said, or how many that were killed
  // before do not die.
  static Result<TemplateProcess> start(const std::string& program);

  TemplateProcess(TemplateProcess&& other) noexcept { *this = std::move(other); }
  TemplateProcess& operator=(TemplateProcess&& other) noexcept;
  ~TemplateProcess() { end(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether it has ended.
  [[nodiscard]] bool ended() const;

  // Sends a whole frame without waiting for what comes back; answer() must follow.
  // Errors: as answer().
  Status send(std::string_view frame, const TemplateLimits& limits, const Abandoned& abandoned);
  // The body of the frame that comes back.
  // Errors: kTemplateFailed, says which limit it passed or how it crashed; kDeadline where it was
  // abandoned; kInternal where it could not set its limits. After an error the process is gone.
  Result<std::string> answer(const Abandoned& abandoned);

  // Whether it has ended of its own will (it had kept too much memory, or used much of its CPU
  // time), so that the call that failed may be made again.
  [[nodiscard]] bool retired() const { return retired_; }

  // Kills it, where it still runs. Takes at most a second; one that is not dead then (the kernel
  // may hold it that long) is reaped when it is, and counts among those that keep start() from
  // starting more.
  void end();

 private:
  TemplateProcess(pid_t pid, UniqueFd pidfd, UniqueFd socket, HelperReaper reaper)
      : pid_(pid),
        pidfd_(std::move(pidfd)),
        socket_(std::move(socket)),
        reaper_(std::move(reaper)) {}

  enum class Ready : std::uint8_t { kReady, kEnded, kLate, kAbandoned };
  Ready wait(short events, const Abandoned& abandoned);
  Status receive(char* bytes, std::size_t size, const Abandoned& abandoned);
  Error gone(Ready why);
  Error ended_error();

  pid_t pid_ = -1;  // -1: gone
  UniqueFd pidfd_;
  UniqueFd socket_;
  std::optional<HelperReaper> reaper_;
  TemplateLimits limits_;
  SteadyTime deadline_{};
  bool retired_ = false;
};

}  // namespace berth::worker
