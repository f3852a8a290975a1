#pragma once

namespace berth::worker {

// What the worker takes from itself before it reads any model: core dumps (they would hold the
// model and what clients wrote), new privileges, other users' access to its files, and ggml's habit
// of starting a debugger when it aborts. SIGPIPE is ignored: a log that cannot be written is no
// reason to end. The process stays dumpable, because its supervisor reads /proc/PID/io.
// Main thread, before any other starts. Cannot fail.
void limit_own_process();

}  // namespace berth::worker
