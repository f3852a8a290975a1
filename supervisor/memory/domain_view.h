#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "supervisor/core/memory/domain.h"
#include "supervisor/core/memory/domain_table.h"
#include "supervisor/core/memory/pressure.h"
#include "supervisor/memory/device_reading.h"
#include "supervisor/memory/host_reading.h"

namespace berth::memory {

// What the newest readings say of every domain (M3). Pure.

// The newest readings of everything. A device that no reading tells of has its figures from its
// list alone.
struct MachineReading {
  HostReading host{};
  std::vector<DeviceReading> devices{};
  // The driver counts processes by other numbers than we do, as in a container: whose memory is
  // whose is not known then.
  bool other_numbers = false;
};

// An instance that is charged, for devices whose driver does not tell whose memory is whose.
struct ChargedProcess {
  pid_t pid = 0;
  core::DomainBytes charge{};
  bool moving = false;  // it loads, or ends: it holds a part of its charge that is not known
};

// How much memory there is for all that is below the limit of our control group. Bytes.
std::uint64_t usable_host_memory(const HostReading& host);

// The driver's reading of that domain; null: there is none.
const DeviceReading* reading_of(const core::Domain& domain, std::span<const DeviceReading> devices);

// Of that reading, what our processes hold; with `child` only that child of berthd and what is
// below it. Absent: not known. Bytes.
std::optional<std::uint64_t> own_use(const DeviceReading& device, const MachineReading& now,
                                     std::optional<pid_t> child = std::nullopt);

// The domains of `table` with what foreign programs use of them now. `before`: the same of the
// sample that preceded; may be empty. The table's own `foreign` is what was used when the device
// was listed. Devices that are `lost` in the table stay so.
core::Domains domains_now(const core::DomainTable& table, const core::Domains& before,
                          const MachineReading& now, std::span<const ChargedProcess> charged);

// What of that use of a device is foreign where its driver does not tell whose memory is whose.
// While one moves it stays what it was `before`, as far as that can be: no more than what nobody
// else is charged, and no less than what all charges together leave. Bytes.
std::uint64_t foreign_by_charge(std::uint64_t used, core::DomainIndex row,
                                std::span<const ChargedProcess> charged,
                                std::optional<std::uint64_t> before);

// Of every domain how much is free of its total, bytes: of the host what is available.
std::vector<std::optional<std::uint64_t>> free_now(const core::Domains& domains,
                                                   const MachineReading& now);

// What decides about the level of pressure (S18).
core::PressureSample pressure_sample(const core::Domains& domains, const MachineReading& now,
                                     std::uint64_t allocation_failures);

}  // namespace berth::memory
