#pragma once

#include <string>

#include "common/result.h"
#include "supervisor/catalog/config.h"
#include "supervisor/process/state_lock.h"

namespace berth {

// What a daemon stands on before its parts are made: directories that are its own, and who it is.
struct DaemonGround {
  process::StateLock lock;  // of the state directory
  std::string boot_id;
  std::string mark_owner;  // process::mark_owner() of the state directory
  std::string worker;      // absolute path of berth-worker
};

// Makes what is missing of it. Blocks on the file system. `is_demo`: only its own user may come to
// its sockets. Errors: kInvalidArgument where the configuration cannot be served, kConflict where
// another daemon has the state or a socket, kInternal.
Result<DaemonGround> prepare_ground(const catalog::ServerConfig& server, bool is_demo);

// Removes sockets of workers that were killed with an earlier daemon. One that still listens is
// kept.
void remove_dead_sockets(const std::string& directory);

}  // namespace berth
