#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/measured_load.h"

namespace berth::core {

// Why such a record cannot be true on this machine: more in a domain than there is of it. Absent:
// it may be. `main_memory`: of the machine, bytes, as devices may have a part of it for a domain of
// their own. Of what failed loads showed to be needed twice as much is possible, since what was
// refused is a part of it. Domains that are not there are not judged. Pure.
std::optional<std::string> doubt_of(const MeasuredLoad& measured, const Domains& domains,
                                    std::uint64_t main_memory);

}  // namespace berth::core
