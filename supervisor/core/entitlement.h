#pragma once

#include "common/result.h"
#include "supervisor/core/caller.h"

namespace berth::core {

// The error as this caller may see it, in every protocol. Its reason never changes, nor what
// becomes a header (how soon to ask again), so that status and headers are the same for everybody
// (I12).
// - Admins see all of it.
// - No client sees log lines, command lines or paths.
// - An un-entitled client does not see what the server does besides: where the message is about the
//   server and not about his own request he gets the error table's sentence, without holder,
//   memory, failure, numbers and names of other models.
Error for_caller(const Error& error, const Caller& caller);

}  // namespace berth::core
