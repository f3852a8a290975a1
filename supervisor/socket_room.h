#pragma once

#include <string>

#include "common/result.h"

namespace berth {

// Makes sure that a worker can make its socket: the directory of workers' sockets is there, made
// again where somebody removed it, and takes one more file. Blocks on the file system. Errors:
// kLoadFailed of class `resource`, since it is neither the model nor the installation that is at
// fault, and a file system that is full has room again some time.
Status make_room_for_socket(const std::string& run_dir);

}  // namespace berth
