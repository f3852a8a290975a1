#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <unordered_set>

#include "supervisor/process/launcher.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::process {

struct LauncherOptions {
  // launch() blocks until the program is executed: a millisecond or two, unless the file system
  // hangs.
  std::chrono::milliseconds exec_wait{5000};
  bool use_clone3 = true;  // false: as on a machine that refuses it
};

// Starts real processes and watches them by their pidfds. Main thread only, which is also the one
// that runs `io`. Owns the list of the processes that it started and that are not reaped; each
// ChildProcess may outlive it, but not `io`.
//
// When a process ends, what is left of its group is killed, then the process is reaped and
// its observer told, within one turn of the loop.
class RealLauncher : public Launcher {
 public:
  explicit RealLauncher(boost::asio::io_context& io, LauncherOptions options = {});

  // Errors beside those of Launcher::launch: kInternal when called from another thread than main.
  Result<std::unique_ptr<ChildProcess>> launch(LaunchSpec spec, ChildObserver& observer) override;

  // Whether `pid` is a process that was started here and is not reaped yet.
  [[nodiscard]] bool owns(pid_t pid) const { return living_->contains(pid); }

 private:
  boost::asio::io_context& io_;
  LauncherOptions options_;
  std::shared_ptr<std::unordered_set<pid_t>> living_;
};

}  // namespace berth::process
