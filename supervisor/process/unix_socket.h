#pragma once

#include <string>

#include "common/result.h"

namespace berth::process {

// The longest path of a Unix socket, in bytes: sockaddr_un holds 108 with the NUL.
constexpr std::size_t kLongestSocketPath = 107;

// Makes `path` ready to be listened at: its length is checked, its directory made (0750) where it
// is missing, and a socket at which nobody listens any more is removed. What is no socket is never
// removed.
// Errors: kInvalidArgument (too long, with both numbers; a file that is no socket; a directory that
// cannot be made), kConflict (somebody listens there; names the pid).
Status prepare_socket_path(const std::string& path);

}  // namespace berth::process
