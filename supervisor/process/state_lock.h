#pragma once

#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// One daemon per state directory: a lock on STATE_DIR/lock, which holds the pid of its holder. The
// kernel frees it when the process ends, however that happens. Held as long as this object lives.
class StateLock {
 public:
  // Makes the directory (0700) where it is missing; one that others may change is refused. Errors:
  // kConflict that names the pid of the holder; kInvalidArgument where the directory or the file
  // cannot be used, with the cause.
  static Result<StateLock> acquire(const std::string& state_dir);

 private:
  explicit StateLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace berth::process
