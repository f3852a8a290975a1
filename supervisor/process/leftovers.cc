#include "supervisor/process/leftovers.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "common/fd.h"
#include "supervisor/process/instance_mark.h"
#include "supervisor/process/proc.h"

namespace berth::process {
namespace {

// A pidfd of the process of the record, where it still exists.
UniqueFd same_process(const Leftover& leftover, const std::string& boot) {
  if (leftover.pid <= 1 || leftover.boot_id != boot) return {};
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, leftover.pid, 0)));
  if (!process) return {};
  // Read after the pidfd was had: if this is the right process now, the pidfd is its.
  const auto stat = read_stat(leftover.pid);
  if (!stat || stat->start_ticks != leftover.start_ticks || stat->state == 'Z') return {};
  return process;
}

bool ended_by(int pidfd, std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ended{pidfd, POLLIN, 0};
    if (::poll(&ended, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0) > 0) return true;
    if (left.count() <= 0) return false;
  }
}

// A process that carries the owner's mark, after it was sent SIGKILL.
struct Killed {
  MarkedLeftover leftover;
  UniqueFd pidfd;
};

// Which of an owner's processes are meant.
struct Wanted {
  std::string owner;
  std::optional<std::string> instance = std::nullopt;  // absent: all
  pid_t spared = 0;
};

// The instance of that process, if it is meant.
std::optional<std::string> wanted_instance(pid_t pid, const Wanted& wanted) {
  if (pid <= 1 || pid == ::getpid() || pid == wanted.spared) return std::nullopt;
  auto instance = marked_instance(environment_of(pid), wanted.owner);
  if (instance && wanted.instance && *instance != *wanted.instance) return std::nullopt;
  return instance;
}

std::optional<Killed> kill_if_marked(pid_t pid, const Wanted& wanted) {
  if (!wanted_instance(pid, wanted)) return std::nullopt;
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return std::nullopt;
  // Again, now that the pidfd is had: if its process ended meanwhile the signal goes nowhere, and
  // if not the number was its own all the time.
  auto instance = wanted_instance(pid, wanted);
  if (!instance) return std::nullopt;
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0) {
    return std::nullopt;
  }
  return Killed{{pid, *std::move(instance)}, std::move(process)};
}

// One look at all processes. Bounded, as each that is found holds a descriptor: the next look goes
// on.
std::vector<Killed> kill_marked_once(const Wanted& wanted) {
  constexpr std::size_t kMost = 256;
  std::vector<Killed> killed;
  for (const pid_t pid : numbered_entries("/proc")) {
    if (killed.size() == kMost) break;
    if (auto one = kill_if_marked(pid, wanted)) killed.push_back(*std::move(one));
  }
  return killed;
}

std::vector<MarkedLeftover> kill_wanted(const Wanted& wanted, std::chrono::milliseconds wait) {
  using Steady = std::chrono::steady_clock;
  // Between two looks: one that does not end must not keep the others' new children alive.
  constexpr std::chrono::milliseconds kLookWait{100};
  const auto deadline = Steady::now() + wait;
  constexpr int kExecuteMs = 10;
  std::map<pid_t, MarkedLeftover> found;
  bool looked_twice = false;
  while (true) {
    std::vector<Killed> killed = kill_marked_once(wanted);
    if (killed.empty()) {
      if (found.empty() || std::exchange(looked_twice, true)) break;
      // A child of theirs that is being executed has no environment for a moment.
      ::poll(nullptr, 0, kExecuteMs);
      continue;
    }
    looked_twice = false;
    const auto look_deadline = std::min(Steady::now() + kLookWait, deadline);
    for (Killed& one : killed) {
      one.leftover.end =
          ended_by(one.pidfd.get(), look_deadline) ? LeftoverEnd::kKilled : LeftoverEnd::kStuck;
      found[one.leftover.pid] = std::move(one.leftover);
    }
    if (Steady::now() >= deadline) break;
  }
  std::vector<MarkedLeftover> all;
  all.reserve(found.size());
  for (auto& [pid, leftover] : found) all.push_back(std::move(leftover));
  return all;
}

}  // namespace

std::vector<LeftoverEnd> kill_leftovers(const std::vector<Leftover>& leftovers,
                                        std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  std::vector<LeftoverEnd> ends(leftovers.size(), LeftoverEnd::kGone);
  const auto boot = boot_id();
  if (!boot) return ends;
  std::vector<UniqueFd> processes;
  processes.reserve(leftovers.size());
  for (const Leftover& leftover : leftovers) {
    processes.push_back(same_process(leftover, *boot));
    const int pidfd = processes.back().get();
    if (pidfd < 0) continue;
    // Workers lead their own group. The group first: its leader keeps the number taken.
    const auto stat = read_stat(leftover.pid);
    if (stat && stat->group == leftover.pid) ::kill(-leftover.pid, SIGKILL);
    ::syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  }
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (!processes[i]) continue;
    ends[i] = ended_by(processes[i].get(), deadline) ? LeftoverEnd::kKilled : LeftoverEnd::kStuck;
  }
  return ends;
}

std::vector<MarkedLeftover> kill_marked(const std::string& owner, std::chrono::milliseconds wait) {
  return kill_wanted({.owner = owner}, wait);
}

void kill_marked_instance(const InstanceMark& mark, pid_t spared, std::chrono::milliseconds wait) {
  kill_wanted({.owner = mark.owner, .instance = mark.instance, .spared = spared}, wait);
}

}  // namespace berth::process
