#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace berth {

// A program as a command line names it, and where it is looked for.
struct ProgramPlace {
  std::string name;       // with a '/': a path, below `directory` where it is relative
  std::string directory;  // the working directory; empty: "/"
  std::string path;       // as the variable PATH
  auto operator<=>(const ProgramPlace&) const = default;
};

// Of a run in that directory with this environment ("NAME=value").
ProgramPlace program_place(const std::string& name, const std::string& directory,
                           const std::vector<std::string>& environment);
// The absolute paths at which the program is looked for, in that order. No I/O.
std::vector<std::string> paths_of(const ProgramPlace& place);

// The program's absolute path, after the beginnings of it and of its interpreters ("#!") were read
// as execve does, so that a disk that has to wake up is waited for here and not where it is
// executed. Blocks for as long as the file system likes. Errors: kLoadFailed with what is missing.
Result<std::string> find_program(const ProgramPlace& place);

// Finds programs without waiting for a file system that hangs: on few threads of its own, each as
// long as its file system takes. Core strand only; its threads may outlive it, and what they find
// then is dropped.
class ProgramReader {
 public:
  using Find = std::function<Result<std::string>(const ProgramPlace&)>;
  // Runs the look at a place, which may never return. Errors: those of process::launch_error().
  using RunAlone = std::function<Status(const ProgramPlace&, std::function<void()>)>;
  struct Options {
    Duration deadline = std::chrono::seconds(30);  // a disk needs ten to wake up
    std::size_t most = 4;                          // threads at once
    Find find = find_program;
    RunAlone run_alone = {};  // empty: a thread of its own
  };

  ProgramReader(Clock& clock, Options options);
  ProgramReader(const ProgramReader&) = delete;
  ProgramReader& operator=(const ProgramReader&) = delete;
  ~ProgramReader();

  // `done` gets what find_program() says, once, never from within this call. Those who ask for the
  // same place share one look at it, and its deadline. Errors beside those: of class `timeout`
  // after the deadline, or at once while an earlier look at that place is late, as it would end the
  // same way; of class `resource` where no thread can be had.
  void read(const ProgramPlace& place, std::function<void(Result<std::string>)> done);

 private:
  // A look at one place; there is at most one for each.
  struct Look {
    ProgramPlace place;
    SteadyTime since{};
    bool runs = false;  // has a thread
    bool late = false;  // nobody waits for it any more, and it has not come back
    std::vector<std::function<void(Result<std::string>)>> waiters;
    Timer deadline;
  };
  // What the threads know of this.
  struct Link;

  void begin_some();
  [[nodiscard]] Status begin(const std::shared_ptr<Look>& look);
  void end(const std::shared_ptr<Look>& look, const Result<std::string>& found);
  void give_up(const std::shared_ptr<Look>& look);
  [[nodiscard]] Error too_late(const Look& look) const;

  Clock& clock_;
  const Options options_;
  const std::shared_ptr<Link> link_;
  std::vector<std::shared_ptr<Look>> looks_;  // in the order in which they were asked for
};

}  // namespace berth
