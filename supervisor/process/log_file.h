#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// The log files of workers: one per model, LOG_DIR/NAME.log, with older ones beside it as
// NAME.log.1 (the youngest) to NAME.log.N. All functions block on the file system: call them on
// the pool. They keep no state.

struct LogPolicy {
  std::string directory;
  std::uint32_t keep = 5;  // older files beside the live one
  // A file at or above this size is rotated when a worker is started. Large enough for hundreds of
  // loads, small enough that all files of a model stay below 100 MiB.
  std::uint64_t rotate_bytes = std::uint64_t{16} << 20U;
};

// What the header line says. Admins only: the command may hold paths.
struct LogHeader {
  std::string instance;
  WallTime time{};
  std::vector<std::string> command;
};

struct OpenedLog {
  UniqueFd output;
  std::string path;
  std::uint64_t start = 0;  // offset (log_cut.h) of the instance's first byte, behind its header
};

// LOG_DIR/NAME.log. Characters of the model's name other than A-Z a-z 0-9 . _ - are
// percent-encoded, and a dot in front, too; what would be too long is cut and ends in a hash.
// Different models never share a file.
std::string log_path(const std::string& directory, std::string_view model);

// Opens the log of a model for a new worker: makes the directory (0700) where it is missing,
// rotates, and writes the header line. The file has mode 0600 and is a regular file; links are not
// followed. Errors: kInternal with path and cause; the worker then runs with /dev/null.
Result<OpenedLog> open_log(const LogPolicy& policy, std::string_view model,
                           const LogHeader& header);

}  // namespace berth::process
