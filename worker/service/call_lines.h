#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "worker/lanes/lane_runner.h"
#include "worker/service/pending_call.h"

namespace berth::worker {

// When the call must have ended; nothing: never.
std::optional<SteadyTime> deadline_of(const PendingCall& call);

// Calls that wait for the threads that prepare them, in two lines: those that need the model's
// template, and the others. Bounded. Until a call's work is delivered, the call can end from here,
// also while its work is being done, which cannot be broken off: what comes of it is dropped then.
// Owns no thread; any thread may call any function.
class CallLines {
 public:
  // Of each line; as many as its lanes take.
  static constexpr std::size_t kQueueLimit = LaneRunner::kQueueLimit;
  enum class Line : std::size_t { kChats, kOthers };

  // Takes a call, which hears its end, also of a refusal.
  void push(const std::shared_ptr<PendingCall>& call);
  // Ends what was cancelled, or whose deadline has passed.
  void sweep();
  // Ends everything that is not delivered yet, and what comes, with kShuttingDown.
  void stop();
  // Has a line's thread do something before its next call: what is left to do for one that was
  // delivered. Whoever posts bounds how much; what end_threads() finds is not done.
  void post(Line line, std::function<void()> task);
  // Whether the call that a line's thread works on has ended, so that nobody waits for it.
  [[nodiscard]] bool abandoned(Line line);
  // Makes the functions below return.
  void end_threads();

  // A thread's life: does the work of a line, call after call, until end_threads().
  void run(Line line, Preparer& preparer);
  // Ditto: sweeps at each deadline.
  void run_deadlines();

 private:
  struct Waiting {
    std::shared_ptr<PendingCall> call;
    std::optional<SteadyTime> deadline;
  };
  struct Queue {
    std::deque<std::function<void()>> tasks;
    std::deque<Waiting> waiting;
    std::optional<Waiting> current;  // being worked on; whoever takes it ends the call
  };
  using Ended = std::vector<std::pair<std::shared_ptr<PendingCall>, JobEnd>>;

  void handle(Queue& queue, const Waiting& waiting, Preparer& preparer);
  static void tell(Ended& ended);
  // With the lock held.
  Queue& queue_of(Line line) { return queues_.at(static_cast<std::size_t>(line)); }
  static void sweep_queue(Queue& queue, SteadyTime now, Ended& ended);
  [[nodiscard]] std::optional<SteadyTime> next_deadline() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Queue, 2> queues_;
  bool stopped_ = false;  // calls are refused
  bool ending_ = false;   // the threads end
};

}  // namespace berth::worker
