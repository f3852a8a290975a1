#pragma once

#include "supervisor/cli/context.h"

namespace berth::cli {

// `berth doctor`: kNo where a check ends with an error.
ExitCode run_doctor(Context& context);

}  // namespace berth::cli
