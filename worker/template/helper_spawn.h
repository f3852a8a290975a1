#pragma once

#include <sys/types.h>

#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::worker {

// A berth-template that runs, and the worker's end of its socket, which does not block.
struct SpawnedHelper {
  pid_t pid = -1;  // the receiver's to reap
  UniqueFd socket;
};

// Starts `program` with nothing but its end of the socket, no blocked and no ignored signals, and
// an environment of almost nothing. It dies with the calling thread. Takes about a millisecond.
// Errors: kInternal, names the program and what the kernel said.
Result<SpawnedHelper> spawn_helper(const std::string& program);

// kInternal: `program` cannot be started, why, and what to do.
Error helper_not_started(const std::string& program, const std::string& why);

}  // namespace berth::worker
