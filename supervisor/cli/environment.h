#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"

namespace berth::cli {

class Interrupts;

// How `berth` ends.
enum class ExitCode : int {
  kOk = 0,
  kNo = 1,             // the answer is no: failed, refused
  kUsage = 2,          // the command line or an argument is wrong
  kUnreachable = 3,    // the daemon cannot be reached
  kInterrupted = 130,  // a signal ended what was asked for
};

// One of the program's two output streams. One thread.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  virtual ~Output() = default;

  // Writes all of `text` before it returns. After a failure (disk full) nothing is written any
  // more, and failed() says why.
  virtual void write(std::string_view text) = 0;
  // The error of the first write that failed, or nothing.
  [[nodiscard]] virtual std::optional<std::string> failed() const = 0;
  [[nodiscard]] virtual bool terminal() const = 0;
};

// A file descriptor as output. Does not own the descriptor.
class FdOutput : public Output {
 public:
  explicit FdOutput(int fd);
  void write(std::string_view text) override;
  [[nodiscard]] std::optional<std::string> failed() const override;
  [[nodiscard]] bool terminal() const override { return terminal_; }

 private:
  int fd_;
  int error_ = 0;
  bool terminal_;
};

// All that the program sees of the world besides the daemon and the file system, passed in so that
// tests run every verb in their own process. Outlives everything that is made from it.
struct Environment {
  // An environment variable; nothing where it is unset.
  std::function<std::optional<std::string>(const char*)> variable;
  Output& out;
  Output& err;
  int input = 0;  // file descriptor of the standard input
  bool input_terminal = false;
  // Columns of the terminal now; 0: not known.
  std::function<int()> columns;
  std::function<WallTime()> wall_now;
  std::function<SteadyTime()> now;
  Interrupts& interrupts;
  // Absolute path of this executable: its neighbours are berthd and berth-worker.
  std::string executable;

  // A variable that is set and not empty.
  [[nodiscard]] std::optional<std::string> non_empty(const char* name) const;
  // Whether `output` may have colours: a terminal that has some, and no NO_COLOR.
  [[nodiscard]] bool colours(const Output& output) const;
  // Whether lines of `output` can be redrawn.
  [[nodiscard]] bool redrawable(const Output& output) const;
};

// Columns of the terminal behind `fd`; 0 where it is none.
int terminal_columns(int fd);

// Wall and steady time of the system.
WallTime system_wall_now();
SteadyTime system_now();

// All of `fd` to its end. Errors: too large (over `limit` bytes), or errno's text.
struct ReadAll {
  std::string text;
  std::string error;  // empty: it was read
};
ReadAll read_all(int fd, std::size_t limit);

}  // namespace berth::cli
