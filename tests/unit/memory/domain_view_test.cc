#include "supervisor/memory/domain_view.h"

#include <gtest/gtest.h>

#include <vector>

namespace berth::memory {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

// berthd (10), a worker (20) and a command's shim (30) with its program (31).
MachineReading machine() {
  MachineReading now;
  now.host.machine = HostMemory{64 * kGiB, 40 * kGiB};
  now.host.processes = {{10, 10, kGiB}, {20, 20, 9 * kGiB}, {30, 30, 0}, {31, 30, 4 * kGiB}};
  return now;
}

DeviceReading card(std::uint64_t used, std::vector<DeviceProcess> processes) {
  DeviceReading reading;
  reading.uuid = "GPU-a";
  reading.total = 24 * kGiB;
  reading.used = used;
  reading.processes = std::move(processes);
  return reading;
}

core::DomainTable table() {
  core::DomainTable made;
  made.domains = {{.id = "host", .device = "", .total = 64 * kGiB, .budget = 38 * kGiB},
                  {.id = "GPU-a", .device = "CUDA0", .total = 24 * kGiB, .budget = 22 * kGiB}};
  made.by_device = {{"CUDA0", 1}};
  return made;
}

TEST(DomainView, M3_ForeignOnTheHostIsWhatIsUsedLessWhatOurProcessesHold) {
  const core::Domains domains = domains_now(table(), {}, machine(), {});
  EXPECT_EQ(domains[0].foreign, 10 * kGiB);  // 64 - 40 - 14
}

TEST(DomainView, M3_AHostThatCannotBeReadKeepsItsFigure) {
  const core::Domains before = domains_now(table(), {}, machine(), {});
  EXPECT_EQ(domains_now(table(), before, {}, {})[0].foreign, 10 * kGiB);
}

TEST(DomainView, M1_AControlGroupBelowTheMachineBoundsTheHost) {
  MachineReading now = machine();
  now.host.cgroup = CgroupLimit{16 * kGiB, 15 * kGiB};
  EXPECT_EQ(usable_host_memory(now.host), 16 * kGiB);
  // Others may have the 48 GiB outside; in the group there is 1 GiB that is not ours.
  EXPECT_EQ(domains_now(table(), {}, now, {})[0].foreign, kGiB);
  now.host.machine->available = 0;
  EXPECT_EQ(domains_now(table(), {}, now, {})[0].foreign, 2 * kGiB);  // 64 - 14 - 48
  now.host.cgroup->limit = 100 * kGiB;
  EXPECT_EQ(usable_host_memory(now.host), 64 * kGiB);
}

TEST(DomainView, M3_OnADeviceTheDriverTellsWhoseMemoryIsWhose) {
  MachineReading now = machine();
  now.devices = {card(20 * kGiB, {{20, 8 * kGiB}, {31, 5 * kGiB}, {999, 6 * kGiB}})};
  EXPECT_EQ(domains_now(table(), {}, now, {})[1].foreign, 7 * kGiB);
  EXPECT_EQ(own_use(now.devices[0], now), 13 * kGiB);
  // A command's program counts as the child that it is below.
  EXPECT_EQ(own_use(now.devices[0], now, 30), 5 * kGiB);
  EXPECT_EQ(own_use(now.devices[0], now, 20), 8 * kGiB);
}

TEST(DomainView, M3_WhereTheDriverCountsOtherwiseTheChargeTells) {
  MachineReading now = machine();
  now.other_numbers = true;
  now.devices = {card(12 * kGiB, {{20, 12 * kGiB}})};
  EXPECT_FALSE(own_use(now.devices[0], now));
  const std::vector<ChargedProcess> ready = {{20, core::DomainBytes::in(1, 9 * kGiB), false}};
  const core::Domains domains = domains_now(table(), {}, now, ready);
  EXPECT_EQ(domains[1].foreign, 3 * kGiB);
  // While one loads, what is new there may be its own.
  now.devices[0].used = 15 * kGiB;
  std::vector<ChargedProcess> loads = ready;
  loads.push_back({21, core::DomainBytes::in(1, 5 * kGiB), true});
  EXPECT_EQ(domains_now(table(), domains, now, loads)[1].foreign, 3 * kGiB);
  EXPECT_EQ(domains_now(table(), domains, now, ready)[1].foreign, 6 * kGiB);
}

TEST(DomainView, M3_ALoadHidesNoMoreOfOthersThanItIsCharged) {
  const core::DomainBytes charge = core::DomainBytes::in(1, 5 * kGiB);
  const std::vector<ChargedProcess> loads = {{21, charge, true}};
  EXPECT_EQ(foreign_by_charge(7 * kGiB, 1, loads, 3 * kGiB), 3 * kGiB);
  EXPECT_EQ(foreign_by_charge(11 * kGiB, 1, loads, 3 * kGiB), 6 * kGiB);
  EXPECT_EQ(foreign_by_charge(2 * kGiB, 1, loads, 3 * kGiB), 2 * kGiB);
  const std::vector<ChargedProcess> holds = {{21, charge, false}};
  EXPECT_EQ(foreign_by_charge(9 * kGiB, 1, holds, 3 * kGiB), 4 * kGiB);
}

TEST(DomainView, M3_ADeviceWithoutADriverOfOursKeepsWhatItsListSaid) {
  core::DomainTable listed = table();
  listed.domains[1].foreign = 2 * kGiB;
  EXPECT_EQ(domains_now(listed, {}, machine(), {})[1].foreign, 2 * kGiB);
}

TEST(DomainView, T70_ALostDeviceTakesNothing) {
  MachineReading now = machine();
  now.devices = {card(0, {})};
  now.devices[0].lost = true;
  EXPECT_EQ(domains_now(table(), {}, now, {})[1].limit(), 0U);
}

TEST(DomainView, S18_ASampleHasThePoolsWithWhatIsOurs) {
  MachineReading now = machine();
  now.host.stall = StallShares{12, 3};
  now.host.high_events = 4;
  now.devices = {card(20 * kGiB, {{20, 8 * kGiB}})};
  const core::Domains domains = domains_now(table(), {}, now, {});
  const core::PressureSample sample = pressure_sample(domains, now, 2);
  EXPECT_EQ(sample.stall_some, 12);
  EXPECT_EQ(sample.stall_full, 3);
  EXPECT_FALSE(sample.own_stall_some);
  EXPECT_EQ(sample.high_events, 4U);
  EXPECT_EQ(sample.allocation_failures, 2U);
  ASSERT_TRUE(sample.host);
  EXPECT_EQ(sample.host->free, 40 * kGiB);
  EXPECT_EQ(sample.host->own, 14 * kGiB);
  ASSERT_EQ(sample.devices.size(), 1U);
  EXPECT_EQ(sample.devices[0].free, 4 * kGiB);
  EXPECT_EQ(sample.devices[0].own, 8 * kGiB);
}

TEST(DomainView, S18_WhatIsFreeIsBoundedByTheControlGroup) {
  MachineReading now = machine();
  now.host.cgroup = CgroupLimit{16 * kGiB, 15 * kGiB};
  EXPECT_EQ(free_now(table().domains, now)[0], kGiB);
  EXPECT_FALSE(free_now(table().domains, now)[1]);
}

}  // namespace
}  // namespace berth::memory
