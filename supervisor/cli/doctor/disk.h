#pragma once

#include <string>
#include <utility>
#include <vector>

#include "supervisor/cli/doctor/check.h"

namespace berth::cli {

// Space and permissions of the daemon's directories: name of the setting, path. One that is not
// there yet is judged by the folder that it will be made in.
Checks check_directories(const std::vector<std::pair<std::string, std::string>>& directories);

}  // namespace berth::cli
