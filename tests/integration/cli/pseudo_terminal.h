#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/fd.h"

namespace berth::cli::test {

// A program on a terminal of its own. Everything that it writes is collected in screen().
class PseudoTerminal {
 public:
  struct Size {
    unsigned short rows = 24;
    unsigned short columns = 80;
  };
  // Starts `arguments` (the first is the program's path) with this environment.
  PseudoTerminal(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& environment, Size size);
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal();  // kills what still runs

  // As if a person typed it: "\x03" is Ctrl-C, "\x04" Ctrl-D.
  void type(const std::string& keys);
  // Waits (generously) until `text` has been written behind what was waited for before.
  [[nodiscard]] bool wait_for(const std::string& text);
  // Waits for the end of the program; its status as waitpid() gives it.
  std::optional<int> wait_end();
  void signal(int number) const;
  // As Ctrl-S does: whoever writes to the terminal waits from now on.
  void hold_output() const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether lines are edited by the kernel and signals made by keys: a terminal as a shell
  // leaves it.
  [[nodiscard]] bool cooked() const;

  // All that was written, and what came behind the last text that was waited for.
  [[nodiscard]] const std::string& screen() const { return screen_; }
  [[nodiscard]] std::string rest() const { return screen_.substr(seen_); }

 private:
  bool read_more(int timeout_ms);

  UniqueFd terminal_;
  pid_t pid_ = -1;
  std::string screen_;
  std::size_t seen_ = 0;
};

}  // namespace berth::cli::test
