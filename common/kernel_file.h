#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace berth {

// The text of a file that the kernel makes as it is read (/proc, /sys, control groups), at most
// `most` bytes of it. Any thread. Absent: it cannot be read.
std::optional<std::string> read_kernel_file(const std::string& path,
                                            std::size_t most = std::size_t{8} << 20U);

}  // namespace berth
