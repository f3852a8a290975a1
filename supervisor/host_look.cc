#include "supervisor/host_look.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "common/result.h"
#include "supervisor/memory/pressure_reading.h"
#include "supervisor/process/own_cgroup.h"
#include "supervisor/process/proc.h"

namespace berth {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h: the first namespace of process numbers.
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;

std::string whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

memory::HostReading HostLook::read() {
  memory::HostReading reading;
  // Before the processes: what these take meanwhile makes too little foreign, not too much.
  if (const auto machine = memory::read_host_memory()) reading.machine = *machine;
  reading.processes = own_processes();
  reading.stall = memory::read_pressure();
  if (cgroup_.empty()) return reading;
  reading.cgroup = memory::read_cgroup_limit(cgroup_, mount_);
  if (const auto events = memory::read_memory_events(cgroup_)) reading.high_events = events->high;
  const std::string pressure = whole(cgroup_ + "/memory.pressure");
  if (!pressure.empty()) reading.own_stall = memory::parse_pressure(pressure);
  return reading;
}

std::vector<memory::OwnProcess> HostLook::own_processes() {
  const bool deep = looks_++ % kDeepLook == 0;
  std::vector<memory::OwnProcess> all;
  std::map<pid_t, Known> found;
  std::vector<pid_t> queue = {self_};
  found[self_].child = self_;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const pid_t pid = queue[next];
    Known& one = found.at(pid);
    const auto bytes = memory::read_own_memory(pid);
    if (!bytes) continue;  // gone; what was below it is an orphan
    all.push_back({pid, one.child, *bytes});
    const auto before = known_.find(pid);
    const bool ask = deep || pid == self_ || before == known_.end();
    one.below = ask ? process::children_of(pid) : before->second.below;
    for (const pid_t below : one.below) {
      if (queue.size() >= kMostProcesses) break;
      pid_t child = pid == self_ ? below : one.child;
      // An orphan still belongs to the child that it came from.
      const auto known = known_.find(below);
      if (pid == self_ && known != known_.end()) child = known->second.child;
      if (found.try_emplace(below, Known{child, {}}).second) queue.push_back(below);
    }
  }
  known_ = std::move(found);
  return all;
}

std::string own_cgroup_directory() {
  return process::cgroup_directory(whole("/proc/self/cgroup"), whole("/proc/self/mountinfo"))
      .value_or(std::string());
}

std::string cgroup_mount() {
  return process::cgroup_directory("0::/", whole("/proc/self/mountinfo")).value_or(std::string());
}

bool drivers_count_otherwise() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) != 0 || info.st_ino != kFirstPidNamespace;
}

}  // namespace berth
