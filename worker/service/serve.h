#pragma once

#include <string_view>

#include "worker/engine/builtin_templates.h"
#include "worker/service/host.h"
#include "worker/service/options.h"

namespace berth::worker {

// Exit statuses of the program, besides 0.
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Writes "berth-worker: MESSAGE" to stderr and returns `status`.
int complain(std::string_view message, int status);

// Serves until told to end, and ends the process. Returns an exit status where that did not begin:
// what the options name is not there, or the socket cannot be had. Main thread, before any other.
int serve(Options options, EngineLoader loader, BuiltinTemplates builtin = {});

}  // namespace berth::worker
