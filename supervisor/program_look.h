#pragma once

#include <string>
#include <vector>

#include "supervisor/catalog/model.h"
#include "supervisor/core/ledger/provenance.h"

namespace berth {

// The files that a run of a command model depends on (L19).
struct ProgramLook {
  // The program as the launch finds it, then each regular file that an argument names ("PATH" or
  // "--option=PATH", relative to the working directory), then that directory where it is missing.
  std::vector<core::ProgramFile> files;
  // Absolute: where a change would make a look find something else, also of what is not there yet.
  std::vector<std::string> watched;
};

// Looks at the program and at the first 64 arguments of a command; `environment` is berthd's own.
// Reads no file, but blocks for as long as the file systems like.
ProgramLook look_at_program(const catalog::ModelSettings& settings,
                            const std::vector<std::string>& environment);

}  // namespace berth
