#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/core/ledger/failure_record.h"

namespace berth::admin {

inline constexpr std::size_t kUsualFailures = 100;
inline constexpr std::size_t kMostFailures = 1000;

// How many records a caller who asked for so many gets; 0: did not say.
std::size_t failure_limit(std::uint32_t asked);

// Those of the model, or with an empty name all.
std::vector<core::FailureRecord> failures_of(std::vector<core::FailureRecord> records,
                                             const std::string& model);

// What stands, then what the store kept of the others in its order. What the store says of one that
// stands, or that was lifted while the store was read, is not told twice.
std::vector<core::FailureRecord> standing_first(std::vector<core::FailureRecord> standing,
                                                std::vector<core::FailureRecord> kept);

}  // namespace berth::admin
