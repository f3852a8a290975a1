#pragma once

#include <string>
#include <utility>
#include <vector>

#include "supervisor/cli/context.h"
#include "supervisor/cli/doctor/check.h"

namespace berth::cli {

// What is known of the daemon, from itself or else from the configured file.
struct DaemonState {
  Checks checks;
  // The daemon's directories: name of the setting, path.
  std::vector<std::pair<std::string, std::string>> directories;
  // The path of its program; empty: not known.
  std::string program;
};

DaemonState look_at_daemon(Context& context);

}  // namespace berth::cli
