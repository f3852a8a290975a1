#include "supervisor/host_look.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "supervisor/memory/pressure_reading.h"
#include "supervisor/process/own_cgroup.h"

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
  reading.processes = processes_.read();
  reading.stall = memory::read_pressure();
  if (cgroup_.empty()) return reading;
  reading.cgroup = memory::read_cgroup_limit(cgroup_, mount_);
  if (const auto events = memory::read_memory_events(cgroup_)) reading.high_events = events->high;
  const std::string pressure = whole(cgroup_ + "/memory.pressure");
  if (!pressure.empty()) reading.own_stall = memory::parse_pressure(pressure);
  return reading;
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
