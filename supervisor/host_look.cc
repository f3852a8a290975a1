#include "supervisor/host_look.h"

#include <sys/stat.h>

#include "common/kernel_file.h"
#include "supervisor/memory/pressure_reading.h"

namespace berth {
namespace {

// PROC_PID_INIT_INO of include/linux/proc_ns.h: the first namespace of process numbers.
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;

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
  if (const auto pressure = read_kernel_file(cgroup_ + "/memory.pressure")) {
    reading.own_stall = memory::parse_pressure(*pressure);
  }
  return reading;
}

bool drivers_count_otherwise() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) != 0 || info.st_ino != kFirstPidNamespace;
}

}  // namespace berth
