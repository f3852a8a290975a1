#include "worker/template/helper_reaper.h"

#include <pthread.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::worker {

struct HelperReaper::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<siginfo_t> end;
};

Result<HelperReaper> HelperReaper::watch(pid_t pid) {
  auto state = std::make_shared<State>();
  try {
    std::thread([state, pid] {
      // By itself: another thread would have to write to /proc, which the sandbox forbids.
      ::pthread_setname_np(::pthread_self(), "helper end");
      siginfo_t info{};
      while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) {
      }
      const std::lock_guard lock(state->mutex);
      state->end = info;
      state->changed.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    return fail(Reason::kInternal, std::string("no thread can wait for it: ") + error.what());
  }
  return HelperReaper(std::move(state));
}

std::optional<siginfo_t> HelperReaper::ended(std::chrono::milliseconds bound) const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, bound, [this] { return state_->end.has_value(); });
  return state_->end;
}

}  // namespace berth::worker
