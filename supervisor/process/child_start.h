#pragma once

#include <sys/types.h>

#include <chrono>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// All that a child needs, prepared, as it may neither allocate nor lock. The fds are above 9, so
// that putting them into their places overwrites none of them, and CLOEXEC.
struct ChildPlan {
  const char* program = nullptr;
  char* const* argv = nullptr;         // ends with null
  char* const* environment = nullptr;  // ends with null
  const char* directory = nullptr;
  int stdin_fd = -1;   // becomes 0
  int output_fd = -1;  // becomes 1 and 2
  int notify_fd = -1;  // becomes 3
  int oom_score_adj = 0;
  int nice = 0;
  int cgroup_fd = -1;      // the directory of the cgroup that it starts in; best effort
  bool use_clone3 = true;  // false: as on a machine that refuses clone3 (old seccomp filters)
};

struct StartedChild {
  pid_t pid = -1;
  UniqueFd pidfd;
  bool in_cgroup = false;  // born there; one that was not may have entered it by itself
};

// The one function of berth that forks. The child is the leader of a process group of its own, is
// killed when the calling thread ends, cannot gain privileges, dumps no core, has no fds but 0 to
// 3, no blocked signals and no signal handlers. oom_score_adj and nice are best effort, as to lower
// them needs privileges, and so is the cgroup.
//
// Returns when the program runs, at most `exec_wait` later. Errors: those of launch_error(), with
// the step and what it worked on ("execve /x/y: No such file or directory"); then no process is
// left.
Result<StartedChild> start_child(const ChildPlan& plan, std::chrono::milliseconds exec_wait);

// Kills (SIGKILL) and reaps a child that is not wanted after all, within a second. One that cannot
// be killed at once (it hangs in a file system) is left to the subreaper.
void discard_child(const StartedChild& child);

}  // namespace berth::process
