#include "supervisor/core/memory/domain_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "supervisor/core/memory/foreign_use.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kGiB = 1ULL << 30U;
constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr std::uint64_t kRam = 64 * kGiB;

const ListedDevice kProcessor{"CPU", "a processor", "", DeviceType::kProcessor, kRam, kRam};
const ListedDevice kCuda{"CUDA0",          "RTX 4090", "0000:01:00.0",
                         DeviceType::kGpu, 24 * kGiB,  23 * kGiB};
const ListedDevice kSoftware{"Vulkan0", "llvmpipe", "", DeviceType::kGpu, kRam, kRam};
const DriverDevice kDriver{"GPU-8f6a", "00000000:01:00.0", "RTX 4090", 24 * kGiB};

DomainTable table_of(const std::vector<ListedDevice>& listed,
                     const std::vector<DriverDevice>& known = {},
                     const BudgetConfig& budgets = {}) {
  return make_domain_table(kRam, listed, known, budgets);
}

TEST(DomainTable, M1_TheHostIsADomainAndLeavesFortyPercentToTheMachine) {
  const DomainTable table = table_of({kProcessor});
  ASSERT_EQ(table.domains.size(), 1U);
  EXPECT_EQ(table.domains[0].id, "host");
  EXPECT_EQ(table.domains[0].budget, kRam / 10 * 6);
  EXPECT_TRUE(table.problems.empty());
}

TEST(DomainTable, M1_ADeviceIsNamedByItsUuidAndKeepsItsHeadroom) {
  const DomainTable table = table_of({kProcessor, kCuda}, {kDriver});
  ASSERT_EQ(table.domains.size(), 2U);
  EXPECT_EQ(table.domains[1].id, "GPU-8f6a");
  EXPECT_EQ(table.domains[1].device, "CUDA0");
  EXPECT_EQ(table.domains[1].budget, 24 * kGiB - 24 * kGiB / 20);
  EXPECT_EQ(table.by_device.at("CUDA0"), 1);
  EXPECT_EQ(table.find("GPU-8f6a"), DomainIndex{1});
  EXPECT_EQ(table.find("CUDA0"), std::nullopt);
}

TEST(DomainTable, M1_ASmallDeviceKeepsHalfAGibibyte) {
  ListedDevice small = kCuda;
  small.total = 2 * kGiB;
  EXPECT_EQ(table_of({small}).domains[1].budget, 2 * kGiB - 512 * kMiB);
}

TEST(DomainTable, M1_WithoutAUuidItIsBackendAndDescriptionNeverAnIndex) {
  ListedDevice moved = kCuda;
  moved.name = "CUDA3";
  EXPECT_EQ(table_of({kCuda}).domains[1].id, "CUDA:RTX 4090");
  EXPECT_EQ(table_of({moved}).domains[1].id, "CUDA:RTX 4090");
}

TEST(DomainTable, M1_TwoCardsOfOneMakeAreToldApartByTheirAddress) {
  ListedDevice second = kCuda;
  second.name = "CUDA1";
  second.pci = "0000:02:00.0";
  const DomainTable table = table_of({second, kCuda});
  ASSERT_EQ(table.domains.size(), 3U);
  EXPECT_EQ(table.domains[1].id, "CUDA:RTX 4090 at 0000:01:00.0");
  EXPECT_EQ(table.by_device.at("CUDA0"), 1);
  EXPECT_EQ(table.by_device.at("CUDA1"), 2);
}

TEST(DomainTable, M1_TwoBackendsOfOneDeviceShareItsMemory) {
  ListedDevice vulkan = kCuda;
  vulkan.name = "Vulkan0";
  const DomainTable table = table_of({kCuda, vulkan}, {kDriver});
  ASSERT_EQ(table.domains.size(), 2U);
  EXPECT_EQ(table.by_device.at("Vulkan0"), table.by_device.at("CUDA0"));
}

TEST(DomainTable, M1_UnifiedMemoryAndSoftwareDevicesAreTheHosts) {
  ListedDevice integrated = kCuda;
  integrated.name = "Vulkan1";
  integrated.type = DeviceType::kIntegratedGpu;
  const DomainTable table = table_of({kSoftware, integrated});
  EXPECT_EQ(table.domains.size(), 1U);
  EXPECT_EQ(table.by_device.at("Vulkan0"), kHostDomain);
  EXPECT_EQ(table.by_device.at("Vulkan1"), kHostDomain);
}

TEST(DomainTable, M1_AnOwnBudgetIsTakenOutOfTheHosts) {
  BudgetConfig budgets;
  budgets.devices["Vulkan:llvmpipe"] = {4 * kGiB, true};
  const DomainTable table = table_of({kSoftware}, {}, budgets);
  ASSERT_EQ(table.domains.size(), 2U);
  EXPECT_EQ(table.domains[1].budget, 4 * kGiB);
  EXPECT_EQ(table.domains[1].limit(), 4 * kGiB);
  EXPECT_EQ(table.domains[0].budget, kRam / 10 * 6 - 4 * kGiB);
  EXPECT_EQ(table.domains[0].total, kRam - 4 * kGiB);
  EXPECT_TRUE(table.problems.empty());
}

TEST(DomainTable, M1_AnOwnBudgetNeverExceedsTheHosts) {
  BudgetConfig budgets;
  budgets.host = 8 * kGiB;
  budgets.devices["Vulkan0"] = {16 * kGiB, true};
  const DomainTable table = table_of({kSoftware}, {}, budgets);
  EXPECT_EQ(table.domains[0].budget, 0U);
  EXPECT_EQ(table.domains[1].budget, 8 * kGiB);
  EXPECT_EQ(table.problems.size(), 1U);
}

TEST(DomainTable, M1_ConfiguredBudgetsWinAndAreNamedEitherWay) {
  BudgetConfig budgets;
  budgets.host = 10 * kGiB;
  budgets.device = 12 * kGiB;
  EXPECT_EQ(table_of({kCuda}, {kDriver}, budgets).domains[1].budget, 12 * kGiB);
  budgets.devices["GPU-8f6a"] = {6 * kGiB, false};
  const DomainTable table = table_of({kCuda}, {kDriver}, budgets);
  EXPECT_EQ(table.domains[0].budget, 10 * kGiB);
  EXPECT_EQ(table.domains[1].budget, 6 * kGiB);
  EXPECT_TRUE(table.problems.empty());
}

TEST(DomainTable, ABudgetOfADeviceThatIsNotThereIsAProblem) {
  BudgetConfig budgets;
  budgets.devices["GPU-gone"] = {6 * kGiB, false};
  const DomainTable table = table_of({kCuda}, {kDriver}, budgets);
  ASSERT_EQ(table.problems.size(), 1U);
  EXPECT_EQ(table.problems[0],
            "memory.devices.GPU-gone: there is no such device; there are GPU-8f6a.");
}

TEST(DomainTable, ABudgetLargerThanTheMachineIsAProblemAndIsBounded) {
  BudgetConfig budgets;
  budgets.host = 1024 * kGiB;
  const DomainTable table = table_of({}, {}, budgets);
  EXPECT_EQ(table.problems.size(), 1U);
  EXPECT_EQ(table.domains[0].limit(), kRam - kRam / 20);
}

TEST(DomainTable, M1_ABudgetThatIsTooLargeIsNamedByItsKey) {
  BudgetConfig budgets;
  budgets.device = 900 * kGiB;
  EXPECT_THAT(table_of({kCuda}, {kDriver}, budgets).problems,
              testing::ElementsAre(testing::StartsWith("memory.device_budget is 900 GiB")));
  budgets.devices["CUDA0"] = {800 * kGiB, false};
  EXPECT_THAT(table_of({kCuda}, {kDriver}, budgets).problems,
              testing::ElementsAre(testing::StartsWith("memory.devices.CUDA0.budget is 800 GiB")));
}

TEST(DomainTable, MoreDevicesThanThereAreDomainsAreNamed) {
  std::vector<ListedDevice> many;
  for (int i = 0; i < 17; ++i) {
    ListedDevice one = kCuda;
    one.name = "CUDA" + std::to_string(i);
    one.pci = "0000:" + std::to_string(10 + i) + ":00.0";
    many.push_back(one);
  }
  const DomainTable table = table_of(many);
  EXPECT_EQ(table.domains.size(), kMaxDomains);
  EXPECT_EQ(table.problems.size(), 2U);
}

TEST(DomainTable, M3_ALimitLeavesWhatOthersUseAndAReserve) {
  Domain domain;
  domain.total = 100 * kGiB;
  domain.budget = 60 * kGiB;
  EXPECT_EQ(domain.limit(), 60 * kGiB);
  domain.foreign = 50 * kGiB;
  EXPECT_EQ(domain.limit(), 45 * kGiB);
  domain.foreign = 99 * kGiB;
  EXPECT_EQ(domain.limit(), 0U);
  domain.foreign = 0;
  domain.lost = true;
  EXPECT_EQ(domain.limit(), 0U);
}

TEST(DomainTable, PciAddressesHaveOneForm) {
  EXPECT_EQ(normal_pci("00000000:01:00.0"), "0000:01:00.0");
  EXPECT_EQ(normal_pci("0000:0A:00.1"), "0000:0a:00.1");
  EXPECT_EQ(normal_pci("01:00.0"), "0000:01:00.0");
  for (const char* bad : {"", ":", ".", "x", "0000:01:00", "0000:zz:00.0", "1:00.0", ":01:00.0"}) {
    EXPECT_EQ(normal_pci(bad), "") << bad;
  }
}

TEST(ForeignUse, M3_OfTheHostItIsWhatIsUsedLessWhatIsOurs) {
  EXPECT_EQ(foreign_of_host(100, 40, 25, 5), 30U);
  EXPECT_EQ(foreign_of_host(100, 90, 25, 5), 0U);
  EXPECT_EQ(foreign_of_host(100, 200, 0, 0), 0U);
  EXPECT_EQ(foreign_of_host(100, 0, UINT64_MAX, 5), 0U);
}

TEST(ForeignUse, M3_OfADeviceWhoeverSaysMoreOfUsIsBelieved) {
  EXPECT_EQ(foreign_of_device(100, 30, 20), 70U);
  EXPECT_EQ(foreign_of_device(100, std::nullopt, 20), 80U);
  EXPECT_EQ(foreign_of_device(100, 0, 120), 0U);
}

TEST(DomainBytes, SumsNeverWrap) {
  DomainBytes huge = DomainBytes::in(3, UINT64_MAX - 1);
  huge += DomainBytes::in(3, 5);
  EXPECT_EQ(huge[3], UINT64_MAX);
  EXPECT_EQ((DomainBytes::in(1, 5) - DomainBytes::in(1, 9))[1], 0U);
  EXPECT_FALSE(DomainBytes::in(2, 6).fits(DomainBytes::in(2, 5)));
  EXPECT_TRUE(DomainBytes::in(2, 5).fits(DomainBytes::in(2, 5)));
}

}  // namespace
}  // namespace berth::core
