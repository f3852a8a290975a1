#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

namespace berth::process {

// Does a job that may hang, again and again, each time on a thread of its own, which outlives this
// object where it hangs. Never two at a time, so that one that hangs costs one thread and what that
// holds; and less and less often, as what did not help the first time seldom helps soon. One
// thread.
class PacedThread {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Between two starts: `first`, then twice as long each time, at most `longest`.
  PacedThread(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : pause_(first), longest_(longest) {}

  // Starts `job`, unless an earlier one still runs or its pause is not over. Never blocks. Where
  // there is no thread to be had it is tried again soon. `job` throws nothing.
  void run(Time now, std::function<void()> job);

 private:
  std::chrono::milliseconds pause_;
  std::chrono::milliseconds longest_;
  Time next_{};
  std::shared_ptr<std::atomic<bool>> runs_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace berth::process
