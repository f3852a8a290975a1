#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "common/result.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace berth::process {

// Makes this process the parent of every descendant whose own parent ended, and leaves none of them
// behind: the orphans of a worker that is gone are killed, and what has ended is reaped, each by
// its own pid, so that the exit status of no launched process is taken away. An orphan that is
// still in the process group of a living worker is left alone; it goes with that worker.
//
// One per program, as it owns the handler of SIGCHLD. Main thread only, which also runs `io`.
class Subreaper {
 public:
  // `is_ours` says which children have an owner (RealLauncher::owns).
  // Errors: kInternal where the kernel refuses, or a second one is made.
  static Result<std::unique_ptr<Subreaper>> start(boost::asio::io_context& io,
                                                  std::function<bool(pid_t)> is_ours);

  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
  ~Subreaper();  // gives back the default SIGCHLD

  // Looks at the children now. Otherwise done whenever one ends.
  void sweep();

 private:
  class Impl;
  explicit Subreaper(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace berth::process
