#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/memory/host_reading.h"

namespace berth {

// What the system says of processes; each of them blocks.
struct ProcessSource {
  std::function<std::vector<pid_t>(pid_t)> children;
  // Clock ticks from boot to its start. Absent: there is no such process.
  std::function<std::optional<std::uint64_t>(pid_t)> started;
  // Anonymous and shared memory, bytes. Absent: ditto.
  std::function<std::optional<std::uint64_t>(pid_t)> memory;
};
// Of /proc.
ProcessSource proc_source();

// Our processes: one and all that descend from it, as its orphans come back to it. Owns nothing but
// what it remembers of whose the orphans were; a number that another process has by now is not
// taken for the one that was known. One thread at a time; some 40 us for each process of the
// machine's /proc, at most kMostProcesses of them, and now and then some 10 us for each thread.
class OwnProcesses {
 public:
  static constexpr std::size_t kMostProcesses = 2048;
  // Every so many looks it asks every process for its children, which are a file for each thread;
  // else only this one and those that are new.
  static constexpr int kDeepLook = 10;

  explicit OwnProcesses(pid_t self, ProcessSource source = proc_source())
      : self_(self), source_(std::move(source)) {}

  [[nodiscard]] std::vector<memory::OwnProcess> read();

 private:
  struct Known {
    std::uint64_t started = 0;
    pid_t child = 0;
    std::vector<pid_t> below{};
  };

  [[nodiscard]] const Known* known(pid_t pid, std::uint64_t started) const;

  const pid_t self_;
  const ProcessSource source_;
  std::map<pid_t, Known> known_;  // of the last look
  int looks_ = 0;
};

}  // namespace berth
