#include "supervisor/core/ledger/memory_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "tests/unit/core/ledger/records.h"

namespace berth::core {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20U;
constexpr std::uint64_t kGiB = 1ULL << 30U;

FailureRecord resource_failure() {
  FailureRecord record = testing::failure_record(1, "m", FailureClass::kResource);
  record.failing_domain = "CUDA0";
  record.memory = {{"host", 1 * kGiB, 8 * kGiB, 8 * kGiB, 1 * kGiB, std::nullopt},
                   {"CUDA0", 4 * kGiB, 3 * kGiB, 2 * kGiB, 1 * kGiB, 3 * kGiB}};
  return record;
}

TEST(MemoryRule, L21_MarginIsTheLargerOf256MiBAndFivePercent) {
  EXPECT_EQ(lift_margin(0), 256 * kMiB);
  EXPECT_EQ(lift_margin(5 * kGiB), 256 * kMiB);
  EXPECT_EQ(lift_margin(100 * kGiB), 5 * kGiB);
}

TEST(MemoryRule, L21_FreeMemoryOfTheFailingDomainLifts) {
  const FailureRecord record = resource_failure();
  std::vector<DomainNow> now = {{"host", 100 * kGiB, std::nullopt},
                                {"CUDA0", 2 * kGiB + 256 * kMiB - 1, std::nullopt}};
  EXPECT_FALSE(memory_lifts(record, now));
  now[1].free = 2 * kGiB + 256 * kMiB;
  EXPECT_EQ(memory_lifts(record, now), "CUDA0 has 2.25 GiB free, 2.00 GiB then");
  now[1].free = std::nullopt;
  EXPECT_FALSE(memory_lifts(record, now));
  EXPECT_FALSE(memory_lifts(record, {}));
}

TEST(MemoryRule, L21_ChargeThatFellByAsMuchLifts) {
  const FailureRecord record = resource_failure();
  std::vector<DomainNow> now = {{"CUDA0", 1 * kGiB, 4 * kGiB - 256 * kMiB + 1}};
  EXPECT_FALSE(memory_lifts(record, now));
  now[0].charge = 4 * kGiB - 256 * kMiB;
  EXPECT_EQ(memory_lifts(record, now), "it needs 3.75 GiB of CUDA0, 4.00 GiB then");
}

TEST(MemoryRule, L21_OnlyResourceAndOomAreAboutMemory) {
  FailureRecord record = resource_failure();
  const std::vector<DomainNow> now = {{"CUDA0", 100 * kGiB, 0}};
  for (int i = 0; i <= static_cast<int>(FailureClass::kUnclassified); ++i) {
    record.failure_class = static_cast<FailureClass>(i);
    const bool about_memory = record.failure_class == FailureClass::kResource ||
                              record.failure_class == FailureClass::kOom;
    EXPECT_EQ(memory_lifts(record, now).has_value(), about_memory) << i;
  }
}

TEST(MemoryRule, L21_AnyDomainWillDoWhereTheFailingOneIsNotKnown) {
  FailureRecord record = resource_failure();
  record.failing_domain.clear();
  EXPECT_TRUE(memory_lifts(record, std::vector<DomainNow>{{"host", 9 * kGiB, std::nullopt}}));
}

TEST(MemoryRule, L21_LowerBoundIsHighWaterPlusTheRefusedAllocation) {
  EXPECT_EQ(charge_lower_bound(resource_failure().memory[1]), 4 * kGiB);
  EXPECT_EQ(charge_lower_bound(resource_failure().memory[0]), 1 * kGiB);
  EXPECT_FALSE(charge_lower_bound({"host", 1, 2, 3, std::nullopt, std::nullopt}));
  EXPECT_EQ(charge_lower_bound({"host", {}, {}, {}, UINT64_MAX, 5}), UINT64_MAX);
}

TEST(MemoryRule, L21_AShortageStandsTwiceAsLongEachTimeInARow) {
  using std::chrono::seconds;
  EXPECT_EQ(shortage_passes(0), seconds(1));
  EXPECT_EQ(shortage_passes(1), seconds(1));
  EXPECT_EQ(shortage_passes(2), seconds(2));
  EXPECT_EQ(shortage_passes(6), seconds(32));
  EXPECT_EQ(shortage_passes(7), seconds(60));
  EXPECT_EQ(shortage_passes(~0U), seconds(60));
  FailureRecord record;
  record.ended = WallTime(seconds(100));
  record.failing_domain = kLaunchDomain;
  EXPECT_FALSE(shortage_lifts(record, 3, WallTime(seconds(103))));
  EXPECT_TRUE(shortage_lifts(record, 3, WallTime(seconds(104))));
  EXPECT_TRUE(shortage_lifts(record, 3, WallTime(seconds(1)))) << "the clock was set back";
  record.failing_domain = "host";
  EXPECT_FALSE(shortage_lifts(record, 1, WallTime(seconds(1000))));
}

}  // namespace
}  // namespace berth::core
