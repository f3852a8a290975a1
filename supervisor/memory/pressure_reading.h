#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::memory {

// What the kernel says of pressure on the host's memory. Any thread; some ten microseconds each.

// Part of the last 10 s, in percent, in which some of the tasks, or all of them, stood still for
// want of memory (PSI). Source: https://docs.kernel.org/accounting/psi.html.
struct StallShares {
  double some = 0;
  double full = 0;
};
// Of the text of /proc/pressure/memory, or of a cgroup's memory.pressure.
std::optional<StallShares> parse_pressure(std::string_view text);
// Absent: this kernel does not measure it.
std::optional<StallShares> read_pressure();

// Counts of a cgroup's memory.events. Source:
// https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files.
struct CgroupEvents {
  std::uint64_t high = 0;  // times that it was throttled for being over memory.high
  std::uint64_t max = 0;   // times that it was about to go over memory.max
  std::uint64_t oom_kills = 0;
};
std::optional<CgroupEvents> parse_memory_events(std::string_view text);
std::optional<CgroupEvents> read_memory_events(const std::string& cgroup_directory);

// Memory of one process that is no clean page of a file: anonymous and shared memory, bytes.
// Absent: there is no such process, or it is a kernel thread.
std::optional<std::uint64_t> parse_own_memory(std::string_view status);
std::optional<std::uint64_t> read_own_memory(pid_t pid);

}  // namespace berth::memory
