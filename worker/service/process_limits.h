#pragma once

namespace berth::worker {

// What the worker takes from itself before it reads any model: core dumps (they would hold the
// model and what clients wrote), new privileges, other users' access to its files, and ggml's habit
// of starting a debugger when it aborts. SIGPIPE is ignored: a log that cannot be written is no
// reason to end. The process stays dumpable, because its supervisor reads /proc/PID/io.
// Main thread, before any other starts. Cannot fail.
void limit_own_process();

// OpenMP's threads wait for each other by spinning, by default so long that on a machine with other
// work each token can take a hundred times as long as it should. How long is read from the
// environment before main(): where nobody has set it (berthd does), the program starts itself again
// with GOMP_SPINCOUNT, which costs 3 ms. Main thread, before anything else.
void restart_with_short_spin(char** argv);

}  // namespace berth::worker
