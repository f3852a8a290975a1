#pragma once

#include <cstdint>
#include <string>

#include "common/result.h"

namespace berth::process {

// A live log that grew too large is cut in place, as its writer holds it open. The first line of a
// cut file says how much is missing, so that readers find their place again.

struct LogCut {
  bool cut = false;
  std::uint64_t size_before = 0;  // bytes
};

// Cuts the file to its last `keep_bytes` when it is over `limit_bytes`. What the child writes
// within the microseconds between the last copy and the cut may be lost. Blocks on the file system.
// Errors: kNotFound, kInternal with path and cause.
Result<LogCut> trim_live(const std::string& path,
                         std::uint64_t limit_bytes = std::uint64_t{256} << 20U,
                         std::uint64_t keep_bytes = std::uint64_t{1} << 20U);

// Where the byte that was at `offset` before a cut is now, of the file that `fd` reads: the offset
// itself where the file is still that long, else as the first line says; at least 0, at most the
// end.
std::uint64_t place_after_cut(int fd, std::uint64_t offset);

}  // namespace berth::process
