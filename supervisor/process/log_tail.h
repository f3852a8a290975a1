#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace berth::process {

// The last `count` lines of a log that were written at or after offset `from` (log_cut.h), oldest
// first, as they may be carried in an error (L16: at most 300 bytes each, no path, nothing
// unprintable). Looks at most at the last 64 KiB; blank lines do not count; an unterminated last
// line does. Blocks on the file system. Errors: kNotFound, kInternal where the file is no regular
// one or cannot be read.
Result<std::vector<std::string>> tail_lines(const std::string& path, std::uint64_t from,
                                            std::size_t count);

}  // namespace berth::process
