#pragma once

#include <string>

namespace berth {

// Where berth's other files are, seen from the running program: beside it in the build tree and
// when installed.

// Absolute path of berth-worker; BERTH_WORKER overrides it (for tests). Empty: not found.
std::string worker_program();

// The same of berth-shim; nothing overrides it.
std::string shim_program();

// Absolute path of a file of share/berth. Empty: not found.
std::string shared_file(const std::string& name);

}  // namespace berth
