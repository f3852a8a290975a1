#pragma once

#include <optional>
#include <string>

#include "supervisor/cli/doctor/check.h"
#include "supervisor/cli/environment.h"

namespace berth::cli {

// Whether berthd and, beside it, berth-worker and berth-template are there, and whether both start:
// their libraries (libllama among the worker's) are then found. `running`: the path of the berthd
// that runs; empty: the one beside this program is meant, else the first one in PATH.
Checks check_worker(const Environment& environment, const std::string& running);

// The loader that an ELF program names, e.g. "/lib64/ld-linux-x86-64.so.2"; nothing where the file
// is no 64-bit ELF program or names none.
std::optional<std::string> program_loader(const std::string& path);

}  // namespace berth::cli
