#pragma once

namespace berth::worker {

// What the worker takes from itself before it reads any model: core dumps (they would hold the
// model and what clients wrote), new privileges, other users' access to its files, and ggml's habit
// of starting a debugger when it aborts. SIGPIPE is ignored: a log that cannot be written is no
// reason to end. The process stays dumpable, because its supervisor reads /proc/PID/io.
// Main thread, before any other starts. Cannot fail.
void limit_own_process();

// OpenMP's threads wait for each other by spinning, some milliseconds before they sleep. On a
// machine with other work each token can then take a hundred times as long as it should, unless
// fewer threads compute meanwhile (ThreadPace). For where that cannot be known: the spinning is
// bounded by GOMP_SPINCOUNT, to some tens of microseconds. That is longer than most steps of a
// small model, so that little is lost while the machine is idle. It is read from the environment
// before main(): where nobody has set it, the program starts itself again with it, which costs 3
// ms. Main thread, before anything else.
void restart_with_short_spin(char** argv);

}  // namespace berth::worker
