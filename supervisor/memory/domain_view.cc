#include "supervisor/memory/domain_view.h"

#include <algorithm>
#include <cstddef>

#include "supervisor/core/memory/foreign_use.h"

namespace berth::memory {
namespace {

std::uint64_t own_memory(const HostReading& host) {
  std::uint64_t sum = 0;
  for (const OwnProcess& process : host.processes) {
    sum = process.bytes > UINT64_MAX - sum ? UINT64_MAX : sum + process.bytes;
  }
  return sum;
}

// Where our control group bounds us, the rest of the machine is room for others, who take nothing
// from us as long as they stay in it.
std::uint64_t foreign_on_host(const HostReading& host, std::uint64_t before) {
  if (!host.machine) return before;
  const std::uint64_t ours = own_memory(host);
  const std::uint64_t foreign =
      core::foreign_of_host(host.machine->total, host.machine->available, ours, 0);
  const std::uint64_t outside = host.machine->total - usable_host_memory(host);
  if (outside == 0) return foreign;
  const std::uint64_t in_group = host.cgroup->used - std::min(host.cgroup->used, ours);
  return std::max(foreign - std::min(foreign, outside), in_group);
}

}  // namespace

std::uint64_t usable_host_memory(const HostReading& host) {
  if (!host.machine) return 0;
  const std::uint64_t total = host.machine->total;
  return host.cgroup ? std::min(total, host.cgroup->limit) : total;
}

const DeviceReading* reading_of(const core::Domain& domain,
                                std::span<const DeviceReading> devices) {
  const auto found = std::ranges::find_if(devices, [&](const DeviceReading& one) {
    return !one.uuid.empty() && one.uuid == domain.id;
  });
  return found == devices.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> own_use(const DeviceReading& device, const MachineReading& now,
                                     std::optional<pid_t> child) {
  if (!device.processes || now.other_numbers) return std::nullopt;
  std::uint64_t sum = 0;
  for (const DeviceProcess& process : *device.processes) {
    const auto own = std::ranges::find(now.host.processes, process.pid, &OwnProcess::pid);
    const bool ours = own != now.host.processes.end() && (!child || own->child == *child);
    if (ours) sum += std::min(process.bytes, UINT64_MAX - sum);
  }
  return sum;
}

std::uint64_t foreign_by_charge(std::uint64_t used, core::DomainIndex row,
                                std::span<const ChargedProcess> charged,
                                std::optional<std::uint64_t> before) {
  std::uint64_t ours = 0;
  std::uint64_t moving = 0;
  for (const ChargedProcess& one : charged) {
    std::uint64_t& sum = one.moving ? moving : ours;
    sum = core::saturating_add(sum, one.charge[row]);
  }
  const std::uint64_t most = core::foreign_of_device(used, std::nullopt, ours);
  if (!before) return most;
  return std::clamp(*before, most - std::min(most, moving), most);
}

core::Domains domains_now(const core::DomainTable& table, const core::Domains& before,
                          const MachineReading& now, std::span<const ChargedProcess> charged) {
  core::Domains domains = table.domains;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    core::Domain& domain = domains[i];
    const auto row = static_cast<core::DomainIndex>(i);
    const bool known = i < before.size();
    if (row == core::kHostDomain) {
      domain.foreign = foreign_on_host(now.host, known ? before[i].foreign : 0);
      continue;
    }
    const DeviceReading* const device = reading_of(domain, now.devices);
    if (device == nullptr) continue;
    domain.lost = domain.lost || device->lost;
    if (device->total > 0) domain.total = device->total;
    const auto ours = own_use(*device, now);
    if (ours && *ours > 0) {
      domain.foreign = core::foreign_of_device(device->used, ours, 0);
    } else {
      const auto was = known ? std::optional(before[i].foreign) : std::nullopt;
      domain.foreign = foreign_by_charge(device->used, row, charged, was);
    }
  }
  return domains;
}

std::vector<std::optional<std::uint64_t>> free_now(const core::Domains& domains,
                                                   const MachineReading& now) {
  std::vector<std::optional<std::uint64_t>> all;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::optional<std::uint64_t>& free = all.emplace_back();
    if (i == core::kHostDomain) {
      if (!now.host.machine) continue;
      free = now.host.machine->available;
      if (!now.host.cgroup) continue;
      const CgroupLimit& group = *now.host.cgroup;
      free = std::min(*free, group.limit - std::min(group.limit, group.used));
    } else if (const DeviceReading* const device = reading_of(domains[i], now.devices)) {
      free = device->total - std::min(device->total, device->used);
    }
  }
  return all;
}

core::PressureSample pressure_sample(const core::Domains& domains, const MachineReading& now,
                                     std::uint64_t allocation_failures) {
  core::PressureSample sample;
  if (now.host.stall) {
    sample.stall_some = now.host.stall->some;
    sample.stall_full = now.host.stall->full;
  }
  if (now.host.own_stall) sample.own_stall_some = now.host.own_stall->some;
  sample.high_events = now.host.high_events;
  sample.allocation_failures = allocation_failures;
  const auto free = free_now(domains, now);
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (!free[i] || domains[i].lost) continue;
    core::PoolSample pool{.id = domains[i].id,
                          .total = domains[i].total,
                          .free = *free[i],
                          .budget = domains[i].budget};
    if (i == core::kHostDomain) {
      pool.total = usable_host_memory(now.host);
      pool.own = own_memory(now.host);
      // What devices have of it of their own is ours all the same.
      pool.budget += pool.total - std::min(pool.total, domains[i].total);
      sample.host = std::move(pool);
    } else {
      pool.own = own_use(*reading_of(domains[i], now.devices), now);
      sample.devices.push_back(std::move(pool));
    }
  }
  return sample;
}

}  // namespace berth::memory
