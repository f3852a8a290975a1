#pragma once

#include <cstdint>
#include <string>

namespace berth {

// Physical cores that this process may run on: those of its affinity mask, hyper-threads of one
// core counted once. At least 1. `sysfs` is the directory with cpu0, cpu1, …
std::uint32_t usable_cores(const std::string& sysfs = "/sys/devices/system/cpu");

}  // namespace berth
