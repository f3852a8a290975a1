#pragma once

#include <string>
#include <vector>

#include "supervisor/cli/environment.h"

namespace berth::cli {

// The whole program: reads the command line (without the program's name), runs the verb and says
// how to end. Throws nothing but what the standard library throws when memory runs out.
ExitCode run(const std::vector<std::string>& arguments, Environment& environment);

}  // namespace berth::cli
