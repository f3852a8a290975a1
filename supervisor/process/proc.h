#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace berth::process {

// What /proc says of processes. Any thread; reads memory-backed files only.

// Field numbers: proc_pid_stat(5).
struct ProcessStat {
  char state = '?';  // 'Z': ended and not reaped yet
  pid_t parent = 0;
  pid_t group = 0;
  std::uint64_t cpu_ticks = 0;  // user and system, also of children that were waited for (14 to 17)
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  // clock ticks from boot to its start
  std::uint64_t resident_pages = 0;
};

// Reads the text of a /proc/PID/stat. Nothing where it is not whole.
std::optional<ProcessStat> parse_stat(std::string_view text);

// Nothing where there is no such process.
std::optional<ProcessStat> read_stat(pid_t pid);

// The living and the unreaped children of a process, over all its threads.
std::vector<pid_t> children_of(pid_t pid);

// The variables that a process was started with, '\0' after each; of more than 1 MiB the first
// part. Empty where there is no such process, it has ended, or it is not ours to look at.
std::string environment_of(pid_t pid);

// The entries of a directory of /proc that are numbers: processes ("/proc"), the threads or the
// file descriptors of one ("/proc/1/fd"). Empty where it cannot be read.
std::vector<pid_t> numbered_entries(const std::string& path);

// Changes with every boot of the machine, so that pid and start time name a process for good.
// Errors: kInternal where /proc is not what it should be.
Result<std::string> boot_id();

}  // namespace berth::process
