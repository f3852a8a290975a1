#pragma once

#include <string>
#include <tl/expected.hpp>

namespace berth::catalog {

// The text of a configuration file, at most kMaxConfigBytes. Blocks on the file system; takes only
// regular files and never waits for a pipe. Error: one sentence about the file.
tl::expected<std::string, std::string> read_config_file(const std::string& path);

// Whether something is there, whatever it is.
bool exists(const std::string& path);

}  // namespace berth::catalog
