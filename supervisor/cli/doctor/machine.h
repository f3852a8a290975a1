#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/clock.h"
#include "supervisor/cli/doctor/check.h"

namespace berth::cli {

// Processors, memory, clock and device nodes.
Checks check_machine(WallTime now);

// The value of a field of /proc/meminfo in bytes.
std::optional<std::uint64_t> meminfo_bytes(std::string_view meminfo, std::string_view field);

// What a clock that shows `now` deserves; `synchronised`: what the kernel says.
Check judge_clock(WallTime now, bool synchronised);

}  // namespace berth::cli
