#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace berth::memory {

// Whether the kernel's log tells that it killed that process for want of memory within the last
// 30 s (L9). Only what the kernel itself wrote counts, and only where process numbers are the same
// to it and to us, which they are not in a container with numbers of its own. False also where the
// log cannot be read: it takes CAP_SYSLOG, or kernel.dmesg_restrict = 0. Asked where the cgroup of
// the worker proves nothing (RealLauncher::counted_oom_kill), or there is none. Of a command's
// worker the number is that of berth-shim, whose child the kernel kills first. Blocks: reads the
// whole log, a few milliseconds, and waits 20 ms for a line that is only being written.
bool kernel_killed_for_memory(pid_t pid);

// Of one record of /dev/kmsg ("priority,sequence,microseconds,flags;text"): whether it tells so,
// and is not older than `since_us` (microseconds since the start of the kernel).
bool tells_of_oom_kill(std::string_view record, pid_t pid, std::uint64_t since_us);

}  // namespace berth::memory
