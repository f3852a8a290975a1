#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.h"

namespace berth::memory {

// The machine's memory, in bytes.
struct HostMemory {
  std::uint64_t total = 0;
  // What the kernel thinks can be had without swapping; page cache counts as free.
  std::uint64_t available = 0;
};

// Asks the kernel; some ten microseconds, any thread. Errors: kInternal.
Result<HostMemory> read_host_memory();

// The same of the text of /proc/meminfo.
Result<HostMemory> parse_meminfo(std::string_view text);

}  // namespace berth::memory
