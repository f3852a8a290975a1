#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/result.h"

namespace berth::process {

// A live log that grew too large is cut in place, as its writer holds it open (L10). The first line
// of a cut file says how many bytes stood before what follows it, so that a byte has a number of
// its own, its offset since the log began, which no cut changes. A place is where that byte is in
// the file now.

inline constexpr std::uint64_t kLongestLiveLog = std::uint64_t{256} << 20U;
inline constexpr std::uint64_t kKeptOfLiveLog = std::uint64_t{1} << 20U;

struct LogCut {
  bool cut = false;
  std::uint64_t size_before = 0;  // bytes
};

// Cuts the file to at most its last `keep_bytes`, at a line, when it is over `limit_bytes`. Where
// the file system can take out a part of a file (ext4, xfs, f2fs), nothing that the child writes
// meanwhile is lost; elsewhere what it writes between the last copy and the cut, microseconds, may
// be. A failure leaves no mark of a cut. Blocks on the file system, and keeps readers of this
// program out meanwhile. Any thread. Errors: kNotFound, kInternal with path and cause.
Result<LogCut> trim_live(const std::string& path, std::uint64_t limit_bytes = kLongestLiveLog,
                         std::uint64_t keep_bytes = kKeptOfLiveLog);

// As that, of the file that `fd` has open, whatever its name is by now.
Result<LogCut> trim_live(int fd, std::uint64_t limit_bytes = kLongestLiveLog,
                         std::uint64_t keep_bytes = kKeptOfLiveLog);

// Offset of the byte that is at `place` in the file that `fd` reads. A place that was taken before
// this call may be another byte's by now: ask for the end by log_end().
std::uint64_t log_offset(int fd, std::uint64_t place);

// Offset of the end of the log: of the next byte that is written.
std::uint64_t log_end(int fd);

// Where the byte with that offset is in the file that `fd` reads: behind the first line where it
// was cut off; at the end where there is no such byte yet; and at the begin where the file is
// shorter though nobody here cut it, as everything that is there is new then.
std::uint64_t log_place(int fd, std::uint64_t offset);

struct LogPart {
  std::string bytes;
  std::uint64_t offset = 0;  // of the first one: not what was asked for where that was cut off
  std::uint64_t end = 0;     // of the log at that moment
};
// At most `most` bytes from `offset` on, never torn by a cut of this program. Any thread. Errors:
// kInternal.
Result<LogPart> read_log_part(int fd, std::uint64_t offset, std::size_t most);

}  // namespace berth::process
