#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.h"
#include "common/result.h"
#include "supervisor/process/leftovers.h"

namespace berth::process {

// The number behind "oom_kill" in the text of a memory.events (kernel: Documentation/admin-guide/
// cgroup-v2.rst): the processes of that cgroup, and below it, which the kernel killed for want of
// memory. Nothing where the text does not say.
std::optional<std::uint64_t> parse_oom_kills(std::string_view text);
// Whether the text of a cgroup.events says that a living process is in the cgroup or below it.
bool parse_populated(std::string_view text);

// The directory in which the workers' cgroups are; shared, so that each of these can end last.
struct CgroupRoot {
  UniqueFd directory;
  std::vector<std::string> left;  // names that could not be removed yet
};

// The cgroup of one instance. Core strand. Its end removes it; one that is not empty by then is
// killed and left to WorkerCgroups::sweep(). Nothing of it fails: what cannot be done is not done.
class WorkerCgroup {
 public:
  WorkerCgroup(std::shared_ptr<CgroupRoot> root, std::string name, UniqueFd directory)
      : root_(std::move(root)), name_(std::move(name)), directory_(std::move(directory)) {}
  WorkerCgroup(const WorkerCgroup&) = delete;
  WorkerCgroup& operator=(const WorkerCgroup&) = delete;
  ~WorkerCgroup();

  [[nodiscard]] int fd() const { return directory_.get(); }
  // Kills all that is in it and below it at once, so that no fork escapes (cgroup.kill, Linux
  // 5.14). False where the kernel has no such file.
  [[nodiscard]] bool kill() const;
  // Whether anything in it lives. What has ended and is not reaped does not.
  [[nodiscard]] bool populated() const;
  // How many of its processes the kernel killed for want of memory; nothing without the memory
  // controller.
  [[nodiscard]] std::optional<std::uint64_t> oom_kills() const;

 private:
  std::shared_ptr<CgroupRoot> root_;
  std::string name_;
  UniqueFd directory_;
};

// Divides the cgroup that was delegated to this program (own_cgroup.h): one for itself, one for
// each worker. Core strand; lives as long as the program. Touches nothing but that directory and
// what is in it, and of that nothing but `supervisor` and what has an instance's id for its name.
class WorkerCgroups {
 public:
  // Moves this process into `directory`/supervisor, as a cgroup with controllers for its children
  // has no processes of its own, and turns the memory controller on for the workers' where it can
  // be had. Errors: kInternal; then nothing is changed.
  static Result<std::unique_ptr<WorkerCgroups>> take_over(const std::string& directory);
  // As take_over(), but leaves this process where it is.
  static Result<std::unique_ptr<WorkerCgroups>> open(const std::string& directory);

  // Errors: kInvalidArgument (`instance` is no UUID), kInternal with the step and errno.
  Result<std::unique_ptr<WorkerCgroup>> make(const std::string& instance);

  // Kills (cgroup.kill) what is in the workers' cgroups of an earlier run, removes these, and says
  // of which something lived. Waits at most `wait`. Blocks; before the first make().
  std::vector<MarkedLeftover> clear_leftovers(std::chrono::milliseconds wait);

  // Removes what could not be removed before. make() does it, too.
  void sweep();

 private:
  explicit WorkerCgroups(std::shared_ptr<CgroupRoot> root) : root_(std::move(root)) {}
  std::shared_ptr<CgroupRoot> root_;
};

}  // namespace berth::process
