#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/fd.h"
#include "common/result.h"

namespace berth::process {

// Reading a child's log. The child, or whoever can write there, is not trusted: links are not
// followed, and only a regular file is read.

// Errors: kNotFound; kInternal where it is no regular file or cannot be opened.
Result<UniqueFd> open_log_input(const std::string& path);

// Bytes. Errors: kInternal.
Result<std::uint64_t> log_size(int fd);

// At most `most` bytes from `offset`; fewer at the end of the file. Errors: kInternal.
Result<std::string> read_log(int fd, std::uint64_t offset, std::size_t most);

// Takes what an inotify descriptor (non-blocking) has to tell, all of which means: read again.
void drain_log_events(int inotify);

}  // namespace berth::process
