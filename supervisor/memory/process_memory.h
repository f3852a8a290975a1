#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/result.h"

namespace berth::memory {

// The memory that a process has resident, in bytes.
struct ProcessMemory {
  std::uint64_t resident = 0;
  // Shared pages divided among those who share them. Absent where the kernel does not say (the
  // process is another user's).
  std::optional<std::uint64_t> proportional;
};

// Asks the kernel, which walks the page tables of the process: some ten milliseconds for a large
// model, so on the pool. Errors: kNotFound where there is no such process.
Result<ProcessMemory> read_process_memory(pid_t pid);

// Of the text of /proc/PID/smaps_rollup; nothing where it has no Rss and Pss.
std::optional<ProcessMemory> parse_smaps_rollup(std::string_view text);

// Of the text of /proc/PID/statm.
std::optional<ProcessMemory> parse_statm(std::string_view text, std::uint64_t page_bytes);

}  // namespace berth::memory
