#include "supervisor/tree_memory.h"

#include <unistd.h>

#include "supervisor/memory/process_memory.h"
#include "supervisor/process/proc.h"
#include "supervisor/process/process_tree.h"

namespace berth {

std::uint64_t process_memory(pid_t pid) {
  const Result<memory::ProcessMemory> read = memory::read_process_memory(pid);
  return read ? read->proportional.value_or(read->resident) : 0;
}

std::uint64_t tree_memory(pid_t child) {
  const auto stat = process::read_stat(child);
  if (!stat) return 0;
  process::ProcessTree tree(child, stat->start_ticks, ::getpid());
  if (!tree.sample()) return 0;
  std::uint64_t sum = 0;
  for (const pid_t member : tree.members()) sum += process_memory(member);
  return sum;
}

}  // namespace berth
