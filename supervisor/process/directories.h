#pragma once

#include <sys/types.h>

#include <string>

#include "common/result.h"

namespace berth::process {

// Makes sure that `path` is a directory; what is missing of it is made with `mode`, whatever the
// umask. Directories that exist stay as they are. Errors: kInvalidArgument with the part of the
// path that is in the way, and why.
Status ensure_directory(const std::string& path, mode_t mode);

}  // namespace berth::process
