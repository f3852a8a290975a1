#pragma once

#include <sys/types.h>

#include <string>

#include "common/result.h"

namespace berth::process {

// Makes sure that `path` is a directory; what is missing of it is made with `mode`, whatever the
// umask. Directories that exist stay as they are. Errors: kInvalidArgument with the part of the
// path that is in the way, and why.
Status ensure_directory(const std::string& path, mode_t mode);

// As ensure_directory(), and nobody else may put files there: a directory that exists must belong
// to this process's effective user or to root, let neither group nor others write, and be no link.
// Its mode is not changed. Errors: kInvalidArgument with owner, mode and what to do.
Status ensure_private_directory(const std::string& path, mode_t mode);

}  // namespace berth::process
