#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/clock.h"
#include "worker/lanes/job.h"

namespace berth::worker {

class Preparer;

// What a preparer's thread does for a call, on a copy of its request: the call may end, and gRPC
// free the request, at any time meanwhile.
class CallWork {
 public:
  CallWork() = default;
  CallWork(const CallWork&) = delete;
  CallWork& operator=(const CallWork&) = delete;
  virtual ~CallWork() = default;

  // May take long.
  virtual void run(Preparer& preparer) = 0;
  // After run(), unless the call has ended meanwhile: passes on what came of it, and sees to it
  // that the call ends.
  virtual void deliver() = 0;
};

// A call of a client that waits for a preparer's thread. Any thread may ask it.
class PendingCall {
 public:
  PendingCall() = default;
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;
  virtual ~PendingCall() = default;

  [[nodiscard]] virtual SteadyTime arrived() const = 0;
  // Whether nobody wants the answer any more. Must be cheap.
  [[nodiscard]] virtual bool cancelled() const = 0;
  // Ends it without an answer: the last call, and not after CallWork::deliver().
  virtual void on_end(JobEnd end) = 0;

  // All three only until it has ended.
  // Whether its work waits for the model's template.
  [[nodiscard]] virtual bool needs_template() const = 0;
  [[nodiscard]] virtual std::optional<std::uint64_t> deadline_ms() const = 0;
  // Its work, with a copy of the request.
  [[nodiscard]] virtual std::unique_ptr<CallWork> take_work() = 0;
};

}  // namespace berth::worker
