#include "supervisor/process/paced_thread.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::process {

void PacedThread::run(Time now, std::function<void()> job) {
  constexpr std::chrono::milliseconds kForWantOfAThread{100};
  if (now < next_ || runs_->load()) return;
  runs_->store(true);
  try {
    std::thread([job = std::move(job), runs = runs_] {
      job();
      runs->store(false);
    }).detach();
  } catch (const std::system_error&) {
    runs_->store(false);
    next_ = now + kForWantOfAThread;
    return;
  }
  next_ = now + pause_;
  pause_ = std::min(2 * pause_, longest_);
}

}  // namespace berth::process
