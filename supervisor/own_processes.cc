#include "supervisor/own_processes.h"

#include <utility>

#include "supervisor/memory/pressure_reading.h"
#include "supervisor/process/proc.h"

namespace berth {

ProcessSource proc_source() {
  return {.children = process::children_of,
          .started = [](pid_t pid) -> std::optional<std::uint64_t> {
            const auto stat = process::read_stat(pid);
            if (!stat) return std::nullopt;
            return stat->start_ticks;
          },
          .memory = memory::read_own_memory};
}

const OwnProcesses::Known* OwnProcesses::known(pid_t pid, std::uint64_t started) const {
  const auto at = known_.find(pid);
  return at != known_.end() && at->second.started == started ? &at->second : nullptr;
}

std::vector<memory::OwnProcess> OwnProcesses::read() {
  const bool deep = looks_++ % kDeepLook == 0;
  std::vector<memory::OwnProcess> all;
  std::map<pid_t, Known> found;
  std::vector<pid_t> queue;
  const auto add = [&](pid_t pid, pid_t child, bool remembered) {
    if (queue.size() >= kMostProcesses || found.contains(pid)) return;
    const auto started = source_.started(pid);
    if (!started) return;  // gone; what was below it is an orphan
    const Known* const before = known(pid, *started);
    // Its number may be another process's since its parent was asked.
    if (remembered && before == nullptr) return;
    // An orphan still belongs to the child that it came from.
    if (pid == child && before != nullptr) child = before->child;
    found.emplace(pid, Known{*started, child});
    queue.push_back(pid);
  };
  add(self_, self_, false);
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const pid_t pid = queue[next];
    Known& one = found.at(pid);
    const auto bytes = source_.memory(pid);
    if (!bytes) continue;
    all.push_back({pid, one.child, *bytes});
    const Known* const before = known(pid, one.started);
    const bool ask = deep || pid == self_ || before == nullptr;
    one.below = ask ? source_.children(pid) : before->below;
    for (const pid_t below : one.below) add(below, pid == self_ ? below : one.child, !ask);
  }
  known_ = std::move(found);
  return all;
}

}  // namespace berth
