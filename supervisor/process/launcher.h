#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "supervisor/core/exit_status.h"

namespace berth::process {

// What is to be started. Everything is prepared by the caller; the child does only
// async-signal-safe calls until it executes the program.
struct LaunchSpec {
  std::string program;                   // absolute path
  std::vector<std::string> argv;         // argv[0] included
  std::vector<std::string> environment;  // "NAME=value", the whole environment
  std::string directory;                 // working directory; empty: "/"
  UniqueFd output;                       // becomes fds 1 and 2; invalid: /dev/null
  // Absolute path of berth-shim: the program runs below it (L4), and is not trusted to end by
  // itself. Empty: the program is the child. Below the shim it has a process group of its own,
  // stdin is /dev/null, and fd 3 is the shim's, which says "listening" when the program runs.
  std::string shim;
  // Closed just before the program is executed: a bound socket that keeps its port until then.
  UniqueFd reservation;
  // Told the child's pid within launch(), once the program runs. May be empty.
  std::function<void(pid_t pid)> started;
  // The instance's id: the name of the cgroup that the process and all its descendants are in,
  // where there are such. Empty: none of its own.
  std::string cgroup;
  int oom_score_adj = 0;  // -1000 to 1000
  int nice = 0;
};

// A process that goes with its evidence. Receives events on the core strand.
class ChildObserver {
 public:
  ChildObserver() = default;
  ChildObserver(const ChildObserver&) = delete;
  ChildObserver& operator=(const ChildObserver&) = delete;
  virtual ~ChildObserver() = default;

  // The child wrote a whole line to its notify pipe (fd 3): "listening". At most 256 bytes.
  virtual void on_notify(std::string_view line) = 0;
  // The process is gone and reaped, and where it had a cgroup nothing in that lives. Once, and
  // last.
  virtual void on_exit(core::ExitStatus status) = 0;
};

// A child process: its process group, its stdin (whose end tells it to go) and its pidfd. Core
// strand only. Must outlive the process: destroy it only after on_exit(), or at the end of the
// program, when it kills the group (SIGKILL) and does not wait.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  virtual ~ChildProcess() = default;

  [[nodiscard]] virtual pid_t pid() const = 0;
  // Start time in clock ticks since boot (/proc/PID/stat, field 22): with pid and boot id it names
  // the process for good.
  [[nodiscard]] virtual std::uint64_t start_ticks() const = 0;

  // Sends a signal to the whole process group. Nothing happens once the process is reaped. Below a
  // shim, and in a cgroup, SIGKILL goes to every descendant, whatever its group, and on_exit()
  // comes after them, however long that takes; a shim that was stopped is continued.
  virtual void signal_group(int signal) = 0;
  // Ends the child's stdin.
  virtual void close_stdin() = 0;
};

// Starts processes. Core strand only, which must be the program's permanent main thread:
// PR_SET_PDEATHSIG follows the thread that forked.
class Launcher {
 public:
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  virtual ~Launcher() = default;

  // Starts `spec.program`. The observer must live until on_exit(); it is never called from within
  // launch(). Errors: kLoadFailed with the step and errno ("execve /x/y: No such file or
  // directory"), of class `resource` where berthd has too little of something, `timeout` where the
  // program was not executed in time (launch_error.h); then no process is left.
  virtual Result<std::unique_ptr<ChildProcess>> launch(LaunchSpec spec,
                                                       ChildObserver& observer) = 0;
};

}  // namespace berth::process
