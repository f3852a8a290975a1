#pragma once

#include "supervisor/cli/doctor/check.h"

namespace berth::cli {

// What berth uses of the kernel: clone3, pidfd, seccomp, Landlock, control groups.
Checks check_kernel();

// Limits that this user's processes start with.
Checks check_limits();

}  // namespace berth::cli
