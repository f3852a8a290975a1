#include "supervisor/memory/cgroup_memory.h"

#include "common/kernel_file.h"
#include "supervisor/memory/proc_text.h"

namespace berth::memory {
namespace {

constexpr int kMostLevels = 64;

}  // namespace

std::optional<std::uint64_t> parse_memory_max(std::string_view text) {
  return leading_number(text);
}

std::uint64_t parse_memory_stat(std::string_view text) {
  std::uint64_t sum = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::size_t blank = line.find(' ');
    const std::string_view key = line.substr(0, blank);
    if (blank == std::string_view::npos || (key != "anon" && key != "shmem")) continue;
    const std::uint64_t bytes = leading_number(line.substr(blank)).value_or(0);
    sum = bytes > UINT64_MAX - sum ? UINT64_MAX : sum + bytes;
  }
  return sum;
}

std::optional<CgroupLimit> read_cgroup_limit(std::string directory, const std::string& mount) {
  std::optional<std::uint64_t> lowest;
  std::string where;
  for (int level = 0; level < kMostLevels && directory.starts_with(mount); ++level) {
    const auto text = read_kernel_file(directory + "/memory.max");
    const auto limit = text ? parse_memory_max(*text) : std::nullopt;
    if (limit && (!lowest || *limit < *lowest)) {
      lowest = limit;
      where = directory;
    }
    const std::size_t slash = directory.rfind('/');
    if (directory == mount || slash == std::string::npos || slash == 0) break;
    directory.resize(slash);
  }
  if (!lowest) return std::nullopt;
  const auto stat = read_kernel_file(where + "/memory.stat");
  return CgroupLimit{*lowest, stat ? parse_memory_stat(*stat) : 0};
}

}  // namespace berth::memory
