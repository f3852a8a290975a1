#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "supervisor/process/launcher.h"
#include "supervisor/process/oom_kill_count.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::process {

class WorkerCgroup;
class WorkerCgroups;

struct LauncherOptions {
  // launch() blocks until the program is executed: a millisecond or two, unless the file system
  // hangs.
  std::chrono::milliseconds exec_wait{5000};
  bool use_clone3 = true;  // false: as on a machine that refuses it
  // How long a shim that was told to kill its descendants has for that, before what carries its
  // instance's mark is killed without it: a command may stop its shim again and again.
  std::chrono::milliseconds shim_wait{3000};
  // Between two looks at how many of a cgroup's processes the kernel has killed.
  std::chrono::milliseconds oom_sample{OomKillCount::kInterval};
  // Where each process with a LaunchSpec::cgroup gets its own. Null: nowhere. Outlives the
  // launcher.
  WorkerCgroups* cgroups = nullptr;
  // Told, once in all, why a process has no cgroup though it should. From within launch().
  std::function<void(const std::string& problem)> on_cgroup_problem{};
};

// Starts real processes and watches them by their pidfds. Main thread only, which is also the one
// that runs `io`. Owns the list of the processes that it started and that are not reaped; each
// ChildProcess may outlive it, but not `io`.
//
// When a process ends, what is left of its group is killed, then the process is reaped and
// its observer told, within one turn of the loop. One with a cgroup is told of when nothing in it
// lives any more (L2); what does is killed by the kernel where it can do that (cgroup.kill), and
// the cgroup is removed.
class RealLauncher : public Launcher {
 public:
  explicit RealLauncher(boost::asio::io_context& io, LauncherOptions options = {});

  // Errors beside those of Launcher::launch: kInternal when called from another thread than main.
  Result<std::unique_ptr<ChildProcess>> launch(LaunchSpec spec, ChildObserver& observer) override;

  // Whether `pid` is a process that was started here and is not reaped yet.
  [[nodiscard]] bool owns(pid_t pid) const { return living_->contains(pid); }
  // Whether memory.events of the cgroup that `pid` was launched in counts a process that the kernel
  // killed for want of memory (L9), itself or a descendant, so shortly before its exit that it
  // explains it (OomKillCount). Known from on_exit() on, for the last 64 of which it is so.
  [[nodiscard]] bool counted_oom_kill(pid_t pid) const;

 private:
  std::unique_ptr<WorkerCgroup> make_cgroup(const std::string& name);
  void tell_cgroup_problem(const std::string& problem);

  boost::asio::io_context& io_;
  LauncherOptions options_;
  std::shared_ptr<std::unordered_set<pid_t>> living_;
  std::shared_ptr<std::deque<pid_t>> oom_killed_;
  bool cgroup_problem_told_ = false;
};

}  // namespace berth::process
