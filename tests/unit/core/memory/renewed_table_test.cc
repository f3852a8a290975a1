#include "supervisor/core/memory/renewed_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace berth::core {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

ListedDevice card(const std::string& name, const std::string& pci) {
  return {name, "GeForce", pci, DeviceType::kGpu, 24 * kGiB, 24 * kGiB};
}

DomainTable table(const std::vector<ListedDevice>& listed,
                  const std::vector<DriverDevice>& known = {}, const BudgetConfig& budgets = {}) {
  return make_domain_table(64 * kGiB, listed, known, budgets);
}

TEST(RenewedTable, M1_ADomainKeepsItsRowWhateverComesOrGoes) {
  const std::vector<DriverDevice> known = {{"GPU-b", "0000:02:00.0", "", 24 * kGiB},
                                           {"GPU-a", "0000:01:00.0", "", 24 * kGiB}};
  const DomainTable first = table({card("CUDA0", "0000:02:00.0")}, known);
  ASSERT_EQ(first.find("GPU-b"), 1);
  const DomainTable more =
      renewed(first, table({card("CUDA0", "0000:01:00.0"), card("CUDA1", "0000:02:00.0")}, known));
  EXPECT_EQ(more.find("GPU-b"), 1);
  EXPECT_EQ(more.find("GPU-a"), 2);
  EXPECT_EQ(more.by_device.at("CUDA0"), 2);
  EXPECT_EQ(more.by_device.at("CUDA1"), 1);
  EXPECT_EQ(more.domains[1].device, "CUDA1");
}

TEST(RenewedTable, T70_ADeviceThatIsNotListedAnyMoreIsLostAndComesBack) {
  const DomainTable first = table({card("CUDA0", "0000:01:00.0")});
  const DomainTable without = renewed(first, table({}));
  ASSERT_EQ(without.domains.size(), 2U);
  EXPECT_TRUE(without.domains[1].lost);
  EXPECT_EQ(without.domains[1].limit(), 0U);
  EXPECT_TRUE(without.by_device.empty());
  const DomainTable back = renewed(without, table({card("CUDA0", "0000:01:00.0")}));
  EXPECT_EQ(back, first);
}

TEST(RenewedTable, M1_AnIdThatTheDriverTellsLaterNamesTheSameRow) {
  const DomainTable first = table({card("CUDA0", "0000:01:00.0")});
  EXPECT_EQ(first.domains[1].id, "CUDA:GeForce");
  const DomainTable later = renewed(
      first, table({card("CUDA0", "0000:01:00.0")}, {{"GPU-a", "0000:01:00.0", "", 24 * kGiB}}));
  ASSERT_EQ(later.domains.size(), 2U);
  EXPECT_EQ(later.domains[1].id, "GPU-a");
  EXPECT_FALSE(later.domains[1].lost);
}

TEST(RenewedTable, M1_ADeviceGetsABudgetOfItsOwnWhileOthersKeepTheirs) {
  const ListedDevice software{"Vulkan0", "llvmpipe", "", DeviceType::kGpu, 64 * kGiB, 64 * kGiB};
  const DomainTable shared = table({software});
  ASSERT_EQ(shared.domains.size(), 1U);
  BudgetConfig own;
  own.devices["Vulkan0"] = {.budget = 4 * kGiB, .own = true};
  const DomainTable apart = renewed(shared, table({software}, {}, own));
  ASSERT_EQ(apart.domains.size(), 2U);
  EXPECT_EQ(apart.by_device.at("Vulkan0"), 1);
  EXPECT_LT(apart.domains[0].budget, shared.domains[0].budget);
  const DomainTable again = renewed(apart, table({software}));
  EXPECT_EQ(again.by_device.at("Vulkan0"), kHostDomain);
  EXPECT_TRUE(again.domains[1].lost);
}

TEST(RenewedTable, M1_WhatThereIsNoRowForIsSaid) {
  std::vector<ListedDevice> old;
  for (int i = 0; i < 15; ++i) {
    old.push_back(card("CUDA" + std::to_string(i), "0000:" + std::to_string(10 + i) + ":00.0"));
  }
  const DomainTable full = table(old);
  ASSERT_EQ(full.domains.size(), kMaxDomains);
  ListedDevice other{"ROCm0", "Radeon", "0000:40:00.0", DeviceType::kGpu, kGiB, kGiB};
  const DomainTable more = renewed(full, table({other}));
  EXPECT_EQ(more.domains.size(), kMaxDomains);
  EXPECT_FALSE(more.by_device.contains("ROCm0"));
  ASSERT_EQ(more.problems.size(), 1U);
  EXPECT_NE(more.problems.front().find("ROCm:Radeon"), std::string::npos);
}

}  // namespace
}  // namespace berth::core
