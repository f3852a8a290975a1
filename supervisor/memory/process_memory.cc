#include "supervisor/memory/process_memory.h"

#include <unistd.h>

#include <string>

#include "common/kernel_file.h"
#include "supervisor/memory/proc_text.h"

namespace berth::memory {

Result<ProcessMemory> read_process_memory(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  if (const auto text = read_kernel_file(directory + "/smaps_rollup")) {
    if (const auto memory = parse_smaps_rollup(*text)) return *memory;
  }
  if (const auto text = read_kernel_file(directory + "/statm")) {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    if (const auto memory = parse_statm(*text, page)) return *memory;
  }
  return fail(Reason::kNotFound, "There is no process " + std::to_string(pid) + ".");
}

std::optional<ProcessMemory> parse_smaps_rollup(std::string_view text) {
  const auto resident = kib_field(text, "Rss");
  const auto proportional = kib_field(text, "Pss");
  if (!resident || !proportional) return std::nullopt;
  return ProcessMemory{*resident, proportional};
}

std::optional<ProcessMemory> parse_statm(std::string_view text, std::uint64_t page_bytes) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto pages = leading_number(text.substr(blank + 1));
  if (!pages || *pages > UINT64_MAX / page_bytes) return std::nullopt;
  return ProcessMemory{*pages * page_bytes, std::nullopt};
}

}  // namespace berth::memory
