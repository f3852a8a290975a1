#include "supervisor/core/memory/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
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
using testing::in_state;
using ::testing::IsEmpty;
using testing::kNow;
using testing::machine;
using testing::need_in_host;
using testing::need_of;
using testing::numbered;
using testing::on;
using testing::option_on;
using testing::ready;
using testing::victims_of;

TEST(Planner, M7_FitsWhereThereIsRoom) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {busy(1, "a", in_host(4))};
  EXPECT_EQ(as<Fits>(plan(snapshot, need_in_host("b", 6))).left, DomainBytes());
  EXPECT_EQ(as<Fits>(plan(snapshot, need_in_host("b", 5))).left, in_host(1));
}

TEST(Planner, M7_ADomainThatIsNotUsedDoesNotMatter) {
  Snapshot snapshot = machine(10, {10});
  snapshot.entries = {busy(1, "a", in_host(40))};  // grown by measurement
  EXPECT_EQ(as<Fits>(plan(snapshot, need_of("b", {option_on(1, on(1, 10))}))).left, DomainBytes());
}

TEST(Planner, M18_TheBankGivesBeforeAModelIsEvicted) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(4))};
  snapshot.bank = in_host(4);
  EXPECT_EQ(as<ShrinkBank>(plan(snapshot, need_in_host("b", 5))).bank, in_host(3));
  const auto evict = as<Evict>(plan(snapshot, need_in_host("b", 8)));
  EXPECT_THAT(victims_of(evict), ElementsAre("a"));
  EXPECT_EQ(evict.bank, in_host(2)) << "no more of it than the victim leaves missing";
}

TEST(Planner, M18_TheFloorOfTheBankIsZeroForALoadAndStandsForIdleWork) {
  Snapshot snapshot = machine(10);
  snapshot.bank = in_host(10);
  snapshot.bank_floor = in_host(2);
  Need need = need_in_host("b", 10);
  EXPECT_EQ(as<ShrinkBank>(plan(snapshot, need)).bank, in_host(10));
  need.caller = CallerClass::kIdle;
  EXPECT_EQ(as<Park>(plan(snapshot, need)).what, ParkFor::kIdleRoom);
  need = need_in_host("b", 8);
  need.caller = CallerClass::kIdle;
  EXPECT_EQ(as<ShrinkBank>(plan(snapshot, need)).bank, in_host(8));
}

TEST(Planner, M10_WaitsForWhatLeavesInsteadOfEvictingMore) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {in_state(1, "a", in_host(6), EntryState::kLeaving),
                      ready(2, "c", in_host(4))};
  const auto park = as<Park>(plan(snapshot, need_in_host("b", 5)));
  EXPECT_EQ(park.what, ParkFor::kLeaving);
  EXPECT_THAT(park.blockers, ElementsAre(numbered(1)));
  EXPECT_EQ(park.missing, in_host(5));
  EXPECT_EQ(park.until, kNow + seconds(600));
  // More than will come back: another goes at the same time.
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("c"));
}

TEST(Planner, M18_WhatLeavesIsAwaitedBeforeTheBankGives) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {in_state(1, "a", in_host(6), EntryState::kLeaving)};
  snapshot.bank = in_host(4);
  EXPECT_EQ(as<Park>(plan(snapshot, need_in_host("b", 4))).what, ParkFor::kLeaving);
  // What a client still uses may take any time.
  snapshot.entries[0].state = EntryState::kClosing;
  EXPECT_EQ(as<ShrinkBank>(plan(snapshot, need_in_host("b", 4))).bank, in_host(4));
  EXPECT_EQ(as<Park>(plan(snapshot, need_in_host("b", 6))).what, ParkFor::kClosing);
}

TEST(Planner, L2_AStuckInstanceStaysChargedAndNobodyWaitsForIt) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {in_state(1, "a", in_host(6), EntryState::kStuck)};
  const auto refuse = as<Refuse>(plan(snapshot, need_in_host("b", 5)));
  EXPECT_EQ(refuse.why, RefuseWhy::kStuck);
  EXPECT_THAT(refuse.models, ElementsAre("a"));
  EXPECT_EQ(refuse.deficit, in_host(1));
  EXPECT_EQ(as<Fits>(plan(snapshot, need_in_host("b", 4))).left, DomainBytes());
}

TEST(Planner, M9_AYoungerWaiterIsAdmittedOnlyBesideAnOlderOnesHold) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {in_state(1, "a", in_host(6), EntryState::kLeaving)};
  snapshot.holds = {
      {.model = "old", .bytes = in_host(8), .since = ago(seconds(5)), .until = kNow + seconds(60)}};
  EXPECT_EQ(as<Fits>(plan(snapshot, need_in_host("b", 2))).at.bytes, in_host(2));
  const auto park = as<Park>(plan(snapshot, need_in_host("b", 3)));
  EXPECT_EQ(park.what, ParkFor::kOlder);
  EXPECT_EQ(park.older, "old");
  EXPECT_EQ(park.again, kNow + seconds(60));
  // The oldest one itself, and one that is older still, are not bound by it.
  Need own = need_in_host("old", 8);
  own.since = ago(seconds(5));
  EXPECT_EQ(as<Park>(plan(snapshot, own)).what, ParkFor::kLeaving);
  Need older = need_in_host("b", 4);
  older.since = ago(seconds(6));
  EXPECT_EQ(as<Fits>(plan(snapshot, older)).at.bytes, in_host(4));
  // It ends with its waiter.
  snapshot.holds[0].until = kNow;
  EXPECT_EQ(as<Fits>(plan(snapshot, need_in_host("b", 4))).at.bytes, in_host(4));
}

TEST(Planner, M9_AYoungerWaiterTakesNothingThatAnOlderOneCountsOn) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(6)), ready(2, "c", in_host(4))};
  snapshot.holds = {{.model = "old",
                     .bytes = in_host(6),
                     .since = ago(seconds(5)),
                     .until = kNow + seconds(60),
                     .frees = {numbered(1)}}};
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 3))), ElementsAre("c"));
  EXPECT_EQ(as<Park>(plan(snapshot, need_in_host("b", 5))).what, ParkFor::kOlder);
}

TEST(Planner, M9_TheHoldOfAWaiterHasItsOptionAndWhatIsTakenForIt) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(6)), busy(2, "c", in_host(4))};
  const Need need = need_in_host("b", 6);
  const auto hold = hold_of(need, plan(snapshot, need));
  ASSERT_TRUE(hold);
  EXPECT_EQ(*hold, (Hold{.model = "b",
                         .bytes = in_host(6),
                         .since = need.since,
                         .until = need.until,
                         .frees = {numbered(1)}}));
  const Need larger = need_in_host("b", 10);
  const auto waits = hold_of(larger, plan(snapshot, larger));
  ASSERT_TRUE(waits);
  EXPECT_THAT(waits->frees, ElementsAre(numbered(1), numbered(2)));
  snapshot.entries.clear();
  EXPECT_EQ(hold_of(need, plan(snapshot, need)), std::nullopt);
}

TEST(Planner, M12_AfterMaxWaitTheModelsInTheWayTakeNothingNew) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {busy(1, "a", in_host(6)), busy(2, "c", in_host(4))};
  Need need = need_in_host("b", 6);
  need.since = ago(seconds(4));
  auto park = as<Park>(plan(snapshot, need));
  EXPECT_EQ(park.what, ParkFor::kClients);
  EXPECT_THAT(park.blockers, ElementsAre(numbered(1)));
  EXPECT_THAT(park.close, IsEmpty());
  EXPECT_EQ(park.again, kNow + seconds(6));
  need.since = ago(seconds(10));
  park = as<Park>(plan(snapshot, need));
  EXPECT_THAT(park.close, ElementsAre(numbered(1)));
  EXPECT_EQ(park.again, std::nullopt);
  // Then that one is waited for, and no other.
  snapshot.entries[0].state = EntryState::kClosing;
  park = as<Park>(plan(snapshot, need));
  EXPECT_EQ(park.what, ParkFor::kClosing);
  EXPECT_THAT(park.blockers, ElementsAre(numbered(1)));
  EXPECT_THAT(park.close, IsEmpty());
}

TEST(Planner, M12_NobodyGoesWhileAModelThatClosesIsInTheWayAllTheSame) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {in_state(1, "a", in_host(6), EntryState::kClosing),
                      ready(2, "c", in_host(4))};
  snapshot.entries[0].clients = 1;
  const auto park = as<Park>(plan(snapshot, need_in_host("b", 8)));
  EXPECT_EQ(park.what, ParkFor::kClosing);
  EXPECT_THAT(park.blockers, ElementsAre(numbered(1)));
  EXPECT_THAT(park.takes, ElementsAre(numbered(1), numbered(2)));
  // Once it is being stopped, the other one goes at the same time.
  snapshot.entries[0].state = EntryState::kLeaving;
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 8))), ElementsAre("c"));
}

TEST(Planner, T17_ALoadInProgressMakesNoEvictionWait) {
  Snapshot snapshot = machine(10);
  Entry loading = in_state(1, "a", in_host(4), EntryState::kLoading);
  loading.clients = 1;
  snapshot.entries = {loading, ready(2, "c", in_host(6))};
  EXPECT_THAT(victims_of(plan(snapshot, need_in_host("b", 5))), ElementsAre("c"));
  // Where that load itself is in the way, its end is waited for, not closed and not killed (T21).
  Need need = need_in_host("b", 8);
  need.since = ago(seconds(60));
  const auto park = as<Park>(plan(snapshot, need));
  EXPECT_EQ(park.what, ParkFor::kClients);
  EXPECT_THAT(park.blockers, ElementsAre(numbered(1)));
  EXPECT_THAT(park.close, IsEmpty());
}

TEST(Planner, T10_NothingIsEvictedWhereItWouldNotSuffice) {
  Snapshot snapshot = machine(10);
  snapshot.entries = {ready(1, "a", in_host(3)), busy(2, "c", in_host(5))};
  EXPECT_EQ(as<Park>(plan(snapshot, need_in_host("b", 6))).what, ParkFor::kClients);
  snapshot.entries[1].pinned = true;
  EXPECT_EQ(as<Refuse>(plan(snapshot, need_in_host("b", 6))).why, RefuseWhy::kPinned);
}

bool would_close(const Snapshot& snapshot, const Need& need, const std::vector<Uuid>& reopened) {
  return !who_would_close(snapshot, {need}, reopened, false).empty();
}

TEST(Planner, M9_AModelGoesOnClosingForWhoeverHasWaitedForItsMemory) {
  Snapshot snapshot = machine(100);
  snapshot.entries = {in_state(1, "a", in_host(60), EntryState::kClosing)};
  snapshot.entries[0].clients = 1;
  const std::vector<Uuid> a = {snapshot.entries[0].id};
  Need need = need_in_host("b", 60);
  EXPECT_FALSE(would_close(snapshot, need, a)) << "not for long";
  need.since = ago(snapshot.policy.max_wait);
  EXPECT_TRUE(would_close(snapshot, need, a));
  need.model = "a";
  EXPECT_FALSE(would_close(snapshot, need, a)) << "its own requests";
  need.model = "b";
  need.caller = CallerClass::kIdle;
  EXPECT_FALSE(would_close(snapshot, need, a)) << "idle work closes nothing";
  need.caller = CallerClass::kForeground;
  snapshot.entries[0].pinned = true;
  EXPECT_FALSE(would_close(snapshot, need, a)) << "it stays";
}

TEST(Planner, M9_AModelDoesNotGoOnClosingForOneWhoseRoomComesFromElsewhere) {
  Snapshot snapshot = machine(130);
  snapshot.entries = {in_state(1, "a", in_host(60), EntryState::kClosing),
                      in_state(2, "c", in_host(60), EntryState::kLeaving)};
  snapshot.entries[0].clients = 1;
  const std::vector<Uuid> a = {snapshot.entries[0].id};
  Need need = need_in_host("b", 60);
  need.since = ago(snapshot.policy.max_wait);
  EXPECT_FALSE(would_close(snapshot, need, a));
  need.options = {{.bytes = in_host(120)}};
  EXPECT_TRUE(would_close(snapshot, need, a)) << "it takes both";
  need = need_of("b", {option_on(1, on(1, 60))});
  need.since = ago(snapshot.policy.max_wait);
  EXPECT_FALSE(would_close(snapshot, need, a)) << "on a device";
}

TEST(Planner, M9_WhatOnlyIdleWorkUsesServesAgainOnlyIfItStays) {
  Snapshot snapshot = machine(100);
  snapshot.entries = {in_state(1, "a", in_host(60), EntryState::kClosing)};
  snapshot.entries[0].soft = 1;
  const std::vector<Uuid> a = {snapshot.entries[0].id};
  const Need young = need_in_host("b", 60);
  EXPECT_TRUE(would_close(snapshot, young, a)) << "it would be taken from idle work at once";
  Need own = need_in_host("a", 60);
  EXPECT_TRUE(who_would_close(snapshot, {young, own}, a, false).empty()) << "a client is served";
}

TEST(Planner, M9_WhoHasRoomAndWaitsForItsLastProcessIsHeldAgainstYoungerOnes) {
  const Need need = need_in_host("b", 60);
  const Fits fits{.at = need.options[0]};
  EXPECT_FALSE(hold_of(need, fits));
  ASSERT_TRUE(hold_of_waiting(need, fits, false));
  EXPECT_EQ(hold_of_waiting(need, fits, false)->bytes, need.options[0].bytes);
  EXPECT_TRUE(hold_of_waiting(need, ShrinkBank{.at = need.options[0]}, false));
  const Refuse foreign{.why = RefuseWhy::kForeign, .at = need.options[0]};
  EXPECT_FALSE(hold_of_waiting(need, foreign, false)) << "it is refused";
  EXPECT_TRUE(hold_of_waiting(need, foreign, true));
  Need idle = need;
  idle.caller = CallerClass::kIdle;
  EXPECT_FALSE(hold_of_waiting(idle, fits, false));
}

TEST(Planner, M9_WhoWaitsForItsLastProcessCountsWhereAModelIsToServeAgain) {
  // "e" comes again as soon as its process has gone; "d", younger, takes what "a" has besides.
  Snapshot snapshot = machine(100);
  snapshot.entries = {in_state(1, "e", in_host(30), EntryState::kLeaving),
                      in_state(2, "a", in_host(20), EntryState::kClosing)};
  snapshot.entries[1].clients = 1;
  Need e = need_in_host("e", 30);
  e.since = ago(2 * snapshot.policy.max_wait);
  Need d = need_in_host("d", 60);
  d.since = ago(snapshot.policy.max_wait);
  const auto who = who_would_close(snapshot, {e, d}, {snapshot.entries[1].id}, false);
  ASSERT_EQ(who.size(), 1U);
  EXPECT_EQ(who[0].need.model, "d");
  EXPECT_TRUE(who[0].again);
}

TEST(Planner, M9_OfTwoThatCloseForOneEitherMayServeAgainButNotBoth) {
  Snapshot snapshot = machine(130);
  snapshot.entries = {in_state(1, "a", in_host(60), EntryState::kClosing),
                      in_state(2, "c", in_host(60), EntryState::kClosing)};
  for (Entry& entry : snapshot.entries) entry.clients = 1;
  const Uuid a = snapshot.entries[0].id;
  const Uuid c = snapshot.entries[1].id;
  Need need = need_in_host("b", 60);
  need.since = ago(snapshot.policy.max_wait);
  EXPECT_FALSE(would_close(snapshot, need, {a}));
  EXPECT_FALSE(would_close(snapshot, need, {c}));
  EXPECT_TRUE(would_close(snapshot, need, {a, c}));
}

TEST(Planner, M9_AYoungerOneDoesNotTakeWhatOnlyALaterWaitersRoomGivesBack) {
  // "a" fits as soon as what it waits for is there; "b", younger, has "e" taken away for itself.
  Snapshot snapshot = machine(200);
  snapshot.entries = {ready(1, "d", in_host(15)), ready(2, "e", in_host(90))};
  snapshot.entries[0].pinned = true;
  snapshot.holds = {
      {.model = "a", .bytes = in_host(95), .since = ago(seconds(3)), .until = kNow + seconds(60)},
      {.model = "b",
       .bytes = in_host(8),
       .since = ago(seconds(2)),
       .until = kNow + seconds(60),
       .frees = {numbered(2)}}};
  const auto waits = as<Park>(plan(snapshot, need_in_host("c", 72)));
  EXPECT_EQ(waits.what, ParkFor::kOlder) << "beside d, e and c there would be no room for a";
}

TEST(Planner, T50_BytesOfEachDeviceDecideNotTheNumberOfModels) {
  // 100 GB over four devices of 48, as many models as there may be, then 29 GB more.
  Snapshot snapshot = machine(64, {48, 48, 48, 48});
  DomainBytes wide;
  for (DomainIndex device = 1; device <= 4; ++device) wide[device] = 25;
  snapshot.entries = {busy(1, "wide", wide), ready(2, "small", on(1, 10))};
  std::vector<PlacementOption> options;
  for (DomainIndex device = 1; device <= 4; ++device) {
    options.push_back(option_on(device, on(device, 29)));
  }
  DomainBytes halves;
  halves[2] = 15;
  halves[3] = 15;
  options.push_back({.placement = {.shares = {{2, 1}, {3, 1}}}, .bytes = halves});
  const auto fits = as<Fits>(plan(snapshot, need_of("b", options)));
  EXPECT_EQ(fits.at.bytes, halves) << "it fits, in two halves, so that nobody has to go";
}

}  // namespace
}  // namespace berth::core
