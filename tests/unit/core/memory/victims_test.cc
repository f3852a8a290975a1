#include "supervisor/core/memory/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <variant>

#include "supervisor/core/memory/planner.h"
#include "tests/unit/core/memory/plans.h"

namespace berth::core {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ago;
using testing::busy;
using ::testing::ElementsAre;
using testing::in_host;
using testing::in_state;
using testing::kNow;
using testing::machine;
using testing::need_in_host;
using testing::numbered;
using testing::on;
using testing::option_on;
using testing::ready;
using testing::victims_of;

TEST(Victims, M8_GraceProtectsWhatWasUsedAMomentAgo) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(10))};
  snapshot.entries[0].idle_since = ago(seconds(4));
  const Decision decision = plan(snapshot, need_in_host("b", 5));
  const Park* park = std::get_if<Park>(&decision);
  ASSERT_NE(park, nullptr);
  EXPECT_EQ(park->what, ParkFor::kGrace);
  EXPECT_EQ(park->again, kNow + seconds(6));
  snapshot.entries[0].idle_since = ago(seconds(10));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 5))), ElementsAre("a"));
}

TEST(Victims, M8_ADemandAsOldAsGraceNeedsNoIdleTime) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(10))};
  snapshot.entries[0].idle_since = kNow;
  Need need = need_in_host("b", 5);
  need.since = ago(seconds(9));
  const Decision decision = plan(snapshot, need);
  const Park* park = std::get_if<Park>(&decision);
  ASSERT_NE(park, nullptr);
  EXPECT_EQ(park->again, kNow + seconds(1));
  need.since = ago(seconds(10));
  EXPECT_THAT(victims_of(plan(snapshot, need)), ElementsAre("a"));
}

TEST(Victims, M8_GraceProtectsNothingUnderCriticalPressureNorOfIdleWork) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(10))};
  snapshot.entries[0].idle_since = kNow;
  snapshot.policy.critical_pressure = true;
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 5))), ElementsAre("a"));
  snapshot.policy.critical_pressure = false;
  snapshot.entries[0].used_last_by_idle_work = true;
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 5))), ElementsAre("a"));
  snapshot.entries[0].used_last_by_idle_work = false;
  snapshot.entries[0].soft = 1;
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 5))), ElementsAre("a"));
}

TEST(Victims, M8_NeverPinnedLeasedOrClaimed) {
  for (const bool pinned : {false, true}) {
    for (const auto state : {EntryState::kStarting, EntryState::kLoading, EntryState::kReady}) {
      Entry entry = in_state(1, "a", in_host(10), state);
      entry.pinned = pinned;
      entry.clients = pinned ? 0 : 1;
      entry.soft = 1;
      entry.used_last_by_idle_work = true;
      entry.abandoned_since = ago(minutes(5));
      PlanPolicy policy;
      policy.critical_pressure = true;
      const Need need = need_in_host("b", 5);
      EXPECT_NE(judge(entry, need, kNow, policy).standing, Standing::kVictim);
      EXPECT_NE(judge(entry, need, kNow, policy).standing, Standing::kGrace);
    }
  }
}

TEST(Victims, M8_CheapestByByteFirst) {
  Snapshot snapshot = machine(30);
  snapshot.entries = {ready(1, "dear", in_host(10)), ready(2, "cheap", in_host(10)),
                      ready(3, "long", in_host(10))};
  snapshot.entries[0].reload = seconds(20);
  snapshot.entries[1].reload = seconds(5);
  snapshot.entries[2].reload = seconds(2);
  snapshot.entries[2].prefill_lost = seconds(10);
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("cheap"));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 18))), ElementsAre("cheap", "long"));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 30))),
              ElementsAre("cheap", "long", "dear"));
}

TEST(Victims, M8_RecencyWeighsTheCost) {
  PlanPolicy policy;
  Entry entry = ready(1, "a", in_host(10));
  entry.reload = seconds(6);
  entry.prefill_lost = seconds(2);
  entry.last_used = kNow;
  EXPECT_DOUBLE_EQ(eviction_cost(entry, kNow, policy), 8);
  entry.last_used = ago(minutes(10));
  EXPECT_DOUBLE_EQ(eviction_cost(entry, kNow, policy), 4);
  entry.last_used = kNow + seconds(1);
  EXPECT_DOUBLE_EQ(eviction_cost(entry, kNow, policy), 8);

  Snapshot snapshot = machine(20);
  snapshot.entries = {ready(1, "now", in_host(10)), ready(2, "long_ago", in_host(10))};
  snapshot.entries[1].reload = seconds(3);
  snapshot.entries[1].last_used = ago(minutes(60));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("long_ago"));
}

TEST(Victims, M8_TiesByLeastRecentUse) {
  Snapshot snapshot = machine(20);
  snapshot.entries = {ready(1, "a", in_host(10)), ready(2, "c", in_host(10))};
  for (Entry& entry : snapshot.entries) entry.reload = Duration::zero();
  snapshot.entries[1].last_used = ago(seconds(61));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("c"));
}

TEST(Victims, M8_WhatTurnsOutUnnecessaryStays) {
  Snapshot snapshot = machine(13);
  snapshot.entries = {ready(1, "small", in_host(3)), ready(2, "large", in_host(10))};
  snapshot.entries[1].reload = seconds(100);
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 3))), ElementsAre("small"));
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 9))), ElementsAre("large"));
}

TEST(Victims, M8_OnlyWhatHasBytesInTheDomainThatIsShort) {
  Snapshot snapshot = machine(100, {10});
  snapshot.entries = {ready(1, "host_only", in_host(50)), ready(2, "device", on(1, 8))};
  snapshot.entries[1].reload = seconds(100);
  const Need need = testing::need_of("b", {option_on(1, on(1, 5))});
  EXPECT_THAT(victims_of(plan(snapshot, need)), ElementsAre("device"));
}

TEST(Victims, M8_WhatIdleWorkHoldsGoesFirstForAClient) {
  Snapshot snapshot = machine(20);
  Entry soft = ready(2, "soft", in_host(10));
  soft.soft = 1;
  soft.reload = seconds(100);
  snapshot.entries = {ready(1, "a", in_host(10)), soft};
  snapshot.jobs = {{.id = numbered(9),
                    .kind = "context_probe",
                    .model = "soft",
                    .instance = numbered(2),
                    .since = ago(seconds(30)),
                    .gives_way_within = seconds(15)}};
  const Decision decision = plan(snapshot, need_in_host("b", 8));
  const PreEmpt* pre_empt = std::get_if<PreEmpt>(&decision);
  ASSERT_NE(pre_empt, nullptr);
  EXPECT_THAT(victims_of(decision), ElementsAre("soft"));
  EXPECT_EQ(pre_empt->victims[0].kind, VictimKind::kIdleWork);
  EXPECT_THAT(pre_empt->jobs, ElementsAre(numbered(9)));
  EXPECT_EQ(pre_empt->within, seconds(15));
}

TEST(Victims, I4_IdleWorkIsTakenAwayAlsoWhileItLoads) {
  Snapshot snapshot = machine(10);
  Entry loading = in_state(1, "soft", in_host(10), EntryState::kLoading);
  loading.soft = 1;
  snapshot.entries = {loading};
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("soft"));
  snapshot.entries[0].clients = 1;
  EXPECT_TRUE(std::holds_alternative<Park>(plan(snapshot, need_in_host("b", 8))));
}

TEST(Victims, I4_WhereAJobsOwnMemorySufficesItsModelStays) {
  Snapshot snapshot = machine(20);
  Entry soft = ready(1, "soft", in_host(10));
  soft.soft = 1;
  snapshot.entries = {soft};
  snapshot.jobs = {{.id = numbered(9), .extra = in_host(6), .instance = numbered(1)}};
  const Decision decision = plan(snapshot, need_in_host("b", 8));
  const PreEmpt* pre_empt = std::get_if<PreEmpt>(&decision);
  ASSERT_NE(pre_empt, nullptr);
  EXPECT_TRUE(pre_empt->victims.empty());
  EXPECT_THAT(pre_empt->jobs, ElementsAre(numbered(9)));
  EXPECT_EQ(pre_empt->missing, in_host(4));
}

TEST(Victims, I3_IdleWorkEvictsNobody) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(8))};
  Need need = need_in_host("b", 5);
  need.caller = CallerClass::kIdle;
  const Decision decision = plan(snapshot, need);
  const Park* park = std::get_if<Park>(&decision);
  ASSERT_NE(park, nullptr);
  EXPECT_EQ(park->what, ParkFor::kIdleRoom);
  need = need_in_host("b", 2);
  need.caller = CallerClass::kIdle;
  EXPECT_TRUE(std::holds_alternative<Fits>(plan(snapshot, need)));
}

TEST(Victims, L5_AnAbandonedLoadGoesOnlyAfterRetryGraceAndOnlyOnce) {
  Snapshot snapshot = machine(10);
  Entry load = in_state(1, "a", in_host(10), EntryState::kLoading);
  load.abandoned_since = ago(seconds(4));
  snapshot.entries = {load};
  Need need = need_in_host("b", 5);
  need.since = ago(minutes(1));  // grace is another thing
  snapshot.policy.critical_pressure = true;
  const Decision early = plan(snapshot, need);
  const Park* park = std::get_if<Park>(&early);
  ASSERT_NE(park, nullptr);
  EXPECT_EQ(park->what, ParkFor::kGrace);
  EXPECT_EQ(park->again, kNow + seconds(6));

  snapshot.entries[0].abandoned_since = ago(seconds(10));
  const Decision decision = plan(snapshot, need);
  const Evict* evict = std::get_if<Evict>(&decision);
  ASSERT_NE(evict, nullptr);
  EXPECT_EQ(evict->victims[0].kind, VictimKind::kAbandonedLoad);

  snapshot.entries[0].torn_down_before = true;
  EXPECT_TRUE(std::holds_alternative<Park>(plan(snapshot, need)));
}

TEST(Victims, L5_AnAbandonedLoadIsNotTornDownForItsOwnModel) {
  Entry load = in_state(1, "b", in_host(10), EntryState::kLoading);
  load.abandoned_since = ago(minutes(1));
  EXPECT_EQ(judge(load, need_in_host("b", 5), kNow, {}).standing, Standing::kLoading);
}

TEST(Victims, T21_ALoadThatSomebodyWaitsForIsNoVictim) {
  Snapshot snapshot = machine(10);
  for (const auto state : {EntryState::kStarting, EntryState::kLoading}) {
    Entry load = in_state(1, "a", in_host(10), state);
    load.clients = 1;
    snapshot.entries = {load};
    Need need = need_in_host("b", 5);
    need.since = ago(minutes(9));
    const Decision decision = plan(snapshot, need);
    const Park* park = std::get_if<Park>(&decision);
    ASSERT_NE(park, nullptr);
    EXPECT_TRUE(park->close.empty());
  }
}

}  // namespace
}  // namespace berth::core
