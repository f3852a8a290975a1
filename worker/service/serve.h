#pragma once

#include <string_view>

#include "worker/engine/builtin_templates.h"
#include "worker/service/host.h"
#include "worker/service/options.h"

namespace berth::worker {

// Exit statuses of the program, besides 0.
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// What the line begins with that says why the program does not serve. berthd knows it, and has the
// rest of the line as the reason of a failed launch.
constexpr std::string_view kRefusal = "berth-worker: cannot start: ";

// Ditto where that is a shortage, which passes: of descriptors, memory, or room for the socket.
// berthd tries again.
constexpr std::string_view kShortage = "berth-worker: cannot start now: ";

// Writes a line with the message to stderr and returns `status`: "berth-worker: MESSAGE" where that
// is 0, else `kRefusal` and the message.
int complain(std::string_view message, int status);

// Serves until told to end, and ends the process. Where the chat template that the options name is
// not there, it serves no more than this as why the load failed. Returns an exit status where there
// is nobody to tell: the socket cannot be had. Main thread, before any other.
int serve(Options options, EngineLoader loader, BuiltinTemplates builtin = {});

}  // namespace berth::worker
