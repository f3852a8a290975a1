#pragma once

namespace berth::process::shim {

// Kills every descendant of this process (SIGKILL), whatever its group or session, and reaps it;
// again and again until none is left, as a dying process may leave new ones. This process must be
// their subreaper, have one thread, and block SIGCHLD. Returns when none is left, which takes as
// long as the kernel takes to let them go: one that hangs in a driver holds its memory, and whoever
// counts it must not be told that it is gone.
void end_descendants();

}  // namespace berth::process::shim
