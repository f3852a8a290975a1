#include "supervisor/memory/host_memory.h"

#include <optional>
#include <string>

#include "common/kernel_file.h"
#include "supervisor/memory/proc_text.h"

namespace berth::memory {

Result<HostMemory> read_host_memory() {
  const std::optional<std::string> text = read_kernel_file("/proc/meminfo");
  if (!text) return fail(Reason::kInternal, "/proc/meminfo cannot be read.");
  return parse_meminfo(*text);
}

Result<HostMemory> parse_meminfo(std::string_view text) {
  const auto total = kib_field(text, "MemTotal");
  const auto available = kib_field(text, "MemAvailable");
  if (!total || !available) {
    return fail(Reason::kInternal, "/proc/meminfo has no MemTotal or no MemAvailable.");
  }
  return HostMemory{*total, *available};
}

}  // namespace berth::memory
