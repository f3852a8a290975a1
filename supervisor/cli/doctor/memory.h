#pragma once

#include <optional>
#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "common/own_environment.h"
#include "common/result.h"
#include "supervisor/cli/doctor/check.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/memory/device_environment.h"
#include "supervisor/memory/device_reading.h"
#include "supervisor/memory/pressure_reading.h"

namespace berth::cli {

// The memory plan: domains and their budgets, what other programs have of them, the driver's
// library, whether the kernel tells of stalls. `daemons`: what the daemon says of it; else it is
// worked out from `budgets` and what `worker` (a path; it may be missing) lists.
Checks check_memory(const std::optional<v1::Memory>& daemons, const core::BudgetConfig& budgets,
                    const std::string& worker);

// What `berth-worker --devices` at this path lists, in the environment that berthd gives it; its
// log lines may stand before the document. Blocks for 5 s at most. Errors: kInternal.
Result<std::vector<core::ListedDevice>> list_devices(
    const std::string& worker,
    const std::vector<std::string>& environment = memory::listing_environment(own_environment()));

// What the daemon's domains deserve.
Checks judge_domains(const v1::Memory& memory);
// The same of a table that was made without the daemon.
Checks judge_table(const core::DomainTable& table);
// What the driver's library said; `nodes`: there are nodes of NVIDIA's devices.
Check judge_driver(const Result<std::vector<memory::DeviceReading>>& read, bool nodes);
Check judge_stalls(const std::optional<memory::StallShares>& stalls);

}  // namespace berth::cli
