#pragma once

#include <string>

#include "berth/v1/admin.pb.h"
#include "berth/v1/error.pb.h"
#include "common/clock.h"

namespace berth::cli {

// Failures of loads, in words for people. Printable text, one line each.

// "exit 1", "SIGSEGV"; empty where the process did not end by itself.
std::string exit_words(const v1::FailureRecord& record);
std::string exit_words(const v1::Failure& failure);
// "exit 1: unknown model architecture: 'x'"; where neither is known, what the class means.
std::string failure_words(const v1::FailureRecord& record);
// "lifted 3 min ago: the served window moved: 4096 -> 8192"
std::string lift_words(const v1::Lift& lift, WallTime now);
// "12 GiB free before, 11 GiB at the failure, 3 GiB predicted"
std::string memory_words(const v1::FailureMemory& memory);

}  // namespace berth::cli
