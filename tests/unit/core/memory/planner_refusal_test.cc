#include "supervisor/core/memory/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/unit/core/memory/plans.h"

namespace berth::core {
namespace {

using std::chrono::seconds;
using testing::ago;
using testing::as;
using testing::busy;
using ::testing::ElementsAre;
using testing::in_host;
using testing::kNow;
using testing::machine;
using testing::need_in_host;
using testing::need_of;
using testing::numbered;
using testing::on;
using testing::option_on;
using testing::ready;
using testing::victims_of;

TEST(Planner, M14_WhatNeverFitsIsRefusedWithItsNumbers) {
  Snapshot snapshot = machine(10, {8});
  snapshot.entries = {ready(1, "a", on(1, 3))};
  DomainBytes bytes = on(1, 11);
  bytes[kHostDomain] = 2;
  const auto refuse = as<Refuse>(plan(snapshot, need_of("b", {option_on(1, bytes)})));
  EXPECT_EQ(refuse.why, RefuseWhy::kNeverFits);
  EXPECT_EQ(refuse.domain, 1);
  EXPECT_EQ(refuse.needed, bytes);
  EXPECT_EQ(refuse.limit[1], 8U);
  EXPECT_EQ(refuse.available[1], 5U);
  EXPECT_EQ(refuse.deficit, on(1, 3));
}

TEST(Planner, M14_AChargeThatClaimsEverythingNeverLooksSmall) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {busy(1, "a", in_host(4))};
  EXPECT_EQ(as<Refuse>(plan(snapshot, need_in_host("b", UINT64_MAX))).why, RefuseWhy::kNeverFits);
}

TEST(Planner, M16_PinnedModelsInTheWayAreNamed) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(6)), ready(2, "c", in_host(2))};
  snapshot.entries[0].pinned = true;
  const auto refuse = as<Refuse>(plan(snapshot, need_in_host("b", 5)));
  EXPECT_EQ(refuse.why, RefuseWhy::kPinned);
  EXPECT_THAT(refuse.models, ElementsAre("a"));
  EXPECT_THAT(refuse.blockers, ElementsAre(numbered(1)));
  EXPECT_EQ(refuse.deficit, in_host(1));
}

TEST(Planner, M16_WhatDoesNotFitBesideOtherPinsIsNotPinned) {
  Snapshot snapshot = machine(10);
  snapshot.domains[0].total = 20;
  snapshot.domains[0].foreign = 15;  // passes
  snapshot.entries = {ready(1, "a", in_host(6)), busy(2, "c", in_host(4))};
  snapshot.entries[0].pinned = true;
  EXPECT_EQ(pin_refusal(snapshot, need_in_host("b", 4)), std::nullopt);
  const auto refuse = pin_refusal(snapshot, need_in_host("b", 5));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(refuse->why, RefuseWhy::kPinned);
  EXPECT_THAT(refuse->models, ElementsAre("a"));
  EXPECT_EQ(pin_refusal(snapshot, need_in_host("a", 6)), std::nullopt) << "it is pinned itself";
  EXPECT_EQ(pin_refusal(snapshot, need_in_host("b", 11))->why, RefuseWhy::kNeverFits);
}

TEST(Planner, M3_ForeignUseIsAwaitedForAMomentThenRefused) {
  Snapshot snapshot = machine(10);
  snapshot.domains[0].total = 20;  // 1 is kept
  snapshot.domains[0].foreign = 12;
  Need need = need_in_host("b", 8);
  const auto park = as<Park>(plan(snapshot, need));
  EXPECT_EQ(park.what, ParkFor::kForeign);
  EXPECT_EQ(park.missing, in_host(1));
  EXPECT_EQ(park.again, kNow + seconds(10));
  need.since = ago(seconds(10));
  const auto refuse = as<Refuse>(plan(snapshot, need));
  EXPECT_EQ(refuse.why, RefuseWhy::kForeign);
  EXPECT_EQ(refuse.limit, in_host(7));
}

TEST(Planner, M17_OneDeviceWhereTheLeastIsLeftOverBeforeSeveral) {
  Snapshot snapshot = machine(100, {20, 12, 30});
  std::vector<PlacementOption> options;
  DomainBytes split = on(1, 5);
  split[3] = 5;
  options.push_back({.placement = {.shares = {{1, 1}, {3, 1}}}, .bytes = split});
  for (DomainIndex device = 1; device <= 3; ++device) {
    options.push_back(option_on(device, on(device, 10)));
  }
  const Need need = need_of("b", options);
  EXPECT_EQ(as<Fits>(plan(snapshot, need)).at.bytes, on(2, 10));
  snapshot.entries = {busy(1, "a", on(2, 5))};
  EXPECT_EQ(as<Fits>(plan(snapshot, need)).at.bytes, on(1, 10));
  // No device has room for it alone: split, before somebody is evicted.
  snapshot.entries = {ready(1, "a", on(1, 12)), ready(2, "c", on(2, 5)), ready(3, "d", on(3, 25))};
  EXPECT_EQ(as<Fits>(plan(snapshot, need)).at.bytes, split);
  // Neither: the cheapest eviction, on one device.
  snapshot.entries[1].reload = std::chrono::milliseconds(100);
  snapshot.entries[0].charge = on(1, 18);
  EXPECT_THAT(victims_of(plan(snapshot, need)), ElementsAre("c"));
}

TEST(Planner, M17_AMissingDeviceIsNotTheProcessor) {
  Snapshot snapshot = machine(100, {20});
  Need need = need_of("b", {});
  need.missing_devices = {"CUDA1"};
  const auto refuse = as<Refuse>(plan(snapshot, need));
  EXPECT_EQ(refuse.why, RefuseWhy::kDeviceMissing);
  EXPECT_THAT(refuse.devices, ElementsAre("CUDA1"));
  snapshot.domains[1].lost = true;
  const auto lost = as<Refuse>(plan(snapshot, need_of("b", {option_on(1, on(1, 4))})));
  EXPECT_EQ(lost.why, RefuseWhy::kDeviceMissing);
  EXPECT_THAT(lost.devices, ElementsAre("gpu0"));
}

}  // namespace
}  // namespace berth::core
