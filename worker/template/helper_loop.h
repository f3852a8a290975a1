#pragma once

namespace berth::worker {

// Answers calls (frames.h) from descriptor `fd` until its other end is closed, or until so much
// memory is in use between two calls (minja keeps some of what macros within loops hold) that a new
// process is better. Returns the exit status: 0, or HelperExit::kProtocol where what came makes no
// sense. Main thread.
int serve_calls(int fd);

}  // namespace berth::worker
