#pragma once

#include <sys/types.h>

#include <cstdint>

namespace berth {

// Bytes that a process holds of its own and its part of what it shares; 0 where the kernel does
// not say. Any thread; reads /proc, some ten milliseconds for a large model.
std::uint64_t process_memory(pid_t pid);

// The same of a child of this process together with all its descendants, at most
// process::ProcessTree::kMostProcesses: of a command model the child is berth-shim, and the memory
// is its program's.
std::uint64_t tree_memory(pid_t child);

}  // namespace berth
