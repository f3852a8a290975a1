#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/clock.h"
#include "supervisor/core/ledger/failure_record.h"

namespace berth::core {

// One memory domain as it is now; bytes. Absent: not known.
struct DomainNow {
  std::string domain;
  std::optional<std::uint64_t> free;
  std::optional<std::uint64_t> charge;  // that a load of the model is predicted to need there
};

// By how much things must be better before a load that failed for want of memory is worth another
// try: max(256 MiB, 5 % of what was free at the failure) (L21).
std::uint64_t lift_margin(std::uint64_t free_at_failure);

// Why a failure need not stand any more: in the domain that failed the free memory grew by the
// margin, or the charge fell by as much. Absent: it stands on; also for one that is neither of
// resource nor oom, and where the numbers are not known. Where the domain that failed is not known,
// each that is will do: one more try is cheaper than a model that stays away.
std::optional<std::string> memory_lifts(const FailureRecord& record,
                                        std::span<const DomainNow> domains);

// Why a failure for want of what starts a process (kLaunchDomain) need not stand any more:
// descriptors and processes are freed by themselves, and nobody measures them. Absent within
// shortage_passes() of it, and for any other failure. `times`: how often it has come in a row.
std::optional<std::string> shortage_lifts(const FailureRecord& record, std::uint32_t times,
                                          WallTime now);
// 1 s for the first one, twice as long for each that follows, at most 60 s: a disk that answers
// with errors for hours does not see a launch every second.
Duration shortage_passes(std::uint32_t times);

// What a load needs at least in that domain, as one that failed there showed: its high-water mark
// plus the allocation that was refused (L21). Absent: neither is known.
std::optional<std::uint64_t> charge_lower_bound(const FailureMemory& memory);

}  // namespace berth::core
