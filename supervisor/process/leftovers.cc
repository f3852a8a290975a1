#include "supervisor/process/leftovers.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "common/fd.h"
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

}  // namespace berth::process
