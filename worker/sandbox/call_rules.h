#pragma once

#include <sys/types.h>

namespace berth::worker {

// Puts this process, for good, under a filter of system calls that a worker has no use for: sockets
// that are not Unix sockets, connections to other processes' sockets, memory and limits of other
// processes, namespaces, mounts, modules, io_uring, changes of owners and modes, ways out of its
// process group and of its signal at its parent's death, and what reaches the process `supervisor`
// (0: one of another namespace of processes, which has no number here). Denied calls fail with
// EPERM (sockets EAFNOSUPPORT; ENOSYS where a caller then goes another way), as drivers try much
// and go on. Needs NO_NEW_PRIVS. Returns 0 or an errno: ENOSYS where the kernel has no filters or
// none is known for this processor.
int forbid_calls(pid_t supervisor);

// Whether forbid_calls() can work here. Changes nothing.
bool can_forbid_calls();

}  // namespace berth::worker
