#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace berth::memory {

// What bounds the memory of a control group (version 2). Any thread; reads memory-backed files.
// Source: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files.

struct CgroupLimit {
  std::uint64_t limit = 0;  // memory.max, bytes
  // Anonymous and shared memory of all that is in that group, bytes: what cannot be dropped.
  std::uint64_t used = 0;

  bool operator==(const CgroupLimit&) const = default;
};

// The lowest memory.max of the group in that directory and of those above it, up to `mount`, where
// version 2 is mounted. Absent: nothing bounds it, or the controller is not there.
std::optional<CgroupLimit> read_cgroup_limit(std::string directory, const std::string& mount);

// Bytes of memory.max; absent: "max", or no number.
std::optional<std::uint64_t> parse_memory_max(std::string_view text);
// Of memory.stat, anon and shmem together.
std::uint64_t parse_memory_stat(std::string_view text);

}  // namespace berth::memory
