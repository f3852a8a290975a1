#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

TEST_F(RoomTest, M12_T43_AReadyModelServesWhileAnotherOneWaits) {
  const auto a = host_model("a", 600);
  const auto user = served(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(1));
  const auto more = request(a);
  world_.clock.settle();
  EXPECT_TRUE(more->lease) << "at once, without a plan";
  EXPECT_FALSE(b->lease);
}

TEST_F(RoomTest, M12_T38_AfterMaxWaitWhatRunsFinishesAndNewOnesQueueBehindTheSwap) {
  const auto a = host_model("a", 600);
  auto user = served(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  EXPECT_EQ(state_of("a"), "closing");
  EXPECT_EQ(b->progress.back().waits_for, "closing");
  EXPECT_EQ(last("model.closing", "for_model"), "b");
  EXPECT_EQ(last("model.closing", "instance"), user->lease.instance_id());
  EXPECT_EQ(world_.events.count("model.evicted"), 0U) << "it may come to nothing";
  const auto next = request(a);
  world_.clock.advance(minutes(1));
  EXPECT_TRUE(user->lease) << "nobody ends it";
  EXPECT_FALSE(next->lease);
  user->lease = {};
  world_.clock.settle();
  EXPECT_EQ(last("model.evicted", "cause"), "closing");
  EXPECT_EQ(last("model.evicted", "for_model"), "b");
  EXPECT_EQ(residency_->room_counters().evictions.at("closing"), 1U);
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease);
  EXPECT_FALSE(next->lease);
  b->lease = {};
  world_.clock.advance(seconds(15));
  EXPECT_TRUE(next->lease);
  EXPECT_EQ(loads(), "aba");
}

TEST_F(RoomTest, M12_WhoWaitedForAPlaceWhenItClosedQueuesBehindTheSwap) {
  scripts_["a"].sequences = 1;
  const auto a = host_model("a", 600);
  auto user = served(a);
  const auto older = request(a);
  world_.clock.advance(seconds(1));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  user->lease = {};
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease) << "a is not loaded again first";
  EXPECT_FALSE(older->lease);
  b->lease = {};
  world_.clock.advance(seconds(15));
  EXPECT_TRUE(older->lease);
  EXPECT_EQ(loads(), "aba");
}

TEST_F(RoomTest, M9_NoRoomIsMadeForWhoWaitsForAModelThatServesAgain) {
  world_.memory.domains[0].budget = 1300 * kMiB;
  const auto a = host_model("a", 600);
  resident(host_model("idle", 600));
  auto user = served(a);
  const auto b_model = host_model("b", 1200);
  auto b = request(b_model);
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  ASSERT_EQ(state_of("idle"), "ready") << "it goes when a has finished";
  const auto next = request(a);
  b.reset();
  world_.clock.settle();
  EXPECT_TRUE(next->lease);
  EXPECT_EQ(state_of("idle"), "ready") << "nothing goes for a second load of a";
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
  EXPECT_EQ(loads(), "idlea");
}

TEST_F(RoomTest, M9_WhoWaitsForAModelThatServesAgainIsNotRefused) {
  world_.memory.domains[0].budget = 1000 * kMiB;
  const auto a = host_model("a", 600);
  auto user = served(a);
  auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  const auto next = request(a);
  world_.clock.settle();
  // It would not fit once more; but it need not.
  world_.memory.needs["a"] = {{.bytes = core::DomainBytes::in(core::kHostDomain, 2000 * kMiB)}};
  b.reset();
  world_.clock.settle();
  EXPECT_TRUE(next->lease);
  EXPECT_EQ(world_.events.count("model.refused"), 0U);
}

TEST_F(RoomTest, M12_AModelGoesOnClosingForAnotherOneAndWhoWaitsForItComesAfterThat) {
  scripts_["a"].sequences = 1;
  const auto a = host_model("a", 600);
  auto user = served(a);
  const auto older = request(a);
  world_.clock.advance(seconds(1));
  auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(1));
  const auto d = request(host_model("d", 600));
  world_.clock.advance(seconds(10));
  ASSERT_EQ(last("model.closing", "for_model"), "b");
  world_.clock.advance(seconds(1));
  b.reset();
  world_.clock.settle();
  ASSERT_EQ(state_of("a"), "closing") << "d has waited for it, too";
  user->lease = {};
  world_.clock.advance(seconds(2));
  EXPECT_EQ(last("model.evicted", "for_model"), "d");
  EXPECT_TRUE(d->lease) << "a is not loaded again first";
  EXPECT_FALSE(older->lease);
}

TEST_F(RoomTest, M9_AYoungerOneDoesNotTakeTheRoomOfWhoWaitsForAModelThatCloses) {
  scripts_["a"].sequences = 1;
  const auto a = host_model("a", 600);
  auto user = served(a);
  const auto b = request(host_model("b", 450));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  // Its next window is smaller.
  world_.memory.needs["a"] = {{.bytes = core::DomainBytes::in(core::kHostDomain, 350 * kMiB)}};
  const auto next = request(a);
  world_.clock.advance(seconds(1));
  const auto c = request(host_model("c", 300));
  world_.clock.advance(seconds(1));
  EXPECT_FALSE(c->lease) << "that is where a goes";
  user->lease = {};
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease);
  EXPECT_TRUE(next->lease);
  EXPECT_FALSE(c->lease);
}

TEST_F(RoomTest, M12_WhoWaitsForAModelThatClosesHasNoOtherOneClosed) {
  scripts_["c"].sequences = 1;
  const auto b_user = served(host_model("b", 275));
  const auto c_model = host_model("c", 575);
  auto c_user = served(c_model);
  world_.clock.advance(seconds(1));
  const auto d = request(host_model("d", 225));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(last("model.closing", "model"), "c");
  const auto next = request(c_model);  // beside d only b's room would do
  world_.clock.advance(seconds(15));
  EXPECT_EQ(state_of("c"), "closing");
  EXPECT_EQ(state_of("b"), "busy") << "it does not close for who comes behind the swap";
  EXPECT_EQ(world_.events.count("model.closing"), 1U);
  EXPECT_EQ(world_.events.count("model.reopened"), 0U);
  c_user->lease = {};
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(d->lease);
  EXPECT_FALSE(next->lease);
}

TEST_F(RoomTest, M12_AModelThatEndsItsWorkAtAShutdownIsNoEviction) {
  const auto a = host_model("a", 600);
  auto user = served(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  residency_->shutdown(minutes(5), [] {});
  user->lease = {};
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
}

TEST_F(RoomTest, M8_TheDryRunCountsTheAgeOfWhoLeftUnserved) {
  const auto a = host_model("a", 600);
  const auto user = served(a);
  const auto b_model = host_model("b", 600);
  auto b = request(b_model);
  world_.clock.advance(seconds(9));
  b.reset();
  world_.clock.advance(seconds(2));
  EXPECT_EQ(residency_->plan(*b_model).need.since, world_.clock.now() - seconds(11));
  world_.clock.advance(seconds(9));
  EXPECT_EQ(residency_->plan(*b_model).need.since, world_.clock.now()) << "beyond retry_grace";
}

TEST_F(RoomTest, M9_AModelThatClosesForSomebodyWhoLeavesServesAgain) {
  const auto a = host_model("a", 600);
  auto user = served(a);
  auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  const auto next = request(a);
  world_.clock.settle();
  EXPECT_FALSE(next->lease);
  b.reset();
  world_.clock.settle();
  EXPECT_EQ(last("model.reopened", "model"), "a");
  EXPECT_EQ(state_of("a"), "busy");
  EXPECT_TRUE(next->lease) << "without a load";
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
  EXPECT_EQ(residency_->room_counters().evictions.count("closing"), 0U);
  user->lease = {};
  next->lease = {};
  world_.clock.advance(minutes(1));
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(loads(), "a");
}

TEST_F(RoomTest, M9_AModelThatClosesForSomebodyWhoGotOtherRoomServesAgain) {
  world_.memory.domains[0].budget = 1100 * kMiB;
  const auto a = host_model("a", 400);
  const auto user = served(a);
  const auto c = host_model("c", 500);
  resident(c);
  ASSERT_TRUE(residency_->pin(c));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  world_.memory.domains[0].budget = 2000 * kMiB;
  residency_->memory_changed();
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(state_of("a"), "busy");
}

TEST_F(RoomTest, M9_AModelClosesOnForOthersWhoWaitedLongEnough) {
  const auto a = host_model("a", 600);
  const auto user = served(a);
  auto b = request(host_model("b", 600));
  const auto c = request(host_model("c", 700));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  b.reset();
  world_.clock.settle();
  EXPECT_EQ(state_of("a"), "closing");
  EXPECT_EQ(world_.events.last("model.reopened"), nullptr);
}

TEST_F(RoomTest, M12_WhoWaitsOnlyAMomentDoesNotKeepAModelClosed) {
  const auto a = host_model("a", 600);
  const auto user = served(a);
  auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  const auto c = request(host_model("c", 700));
  world_.clock.advance(seconds(1));
  ASSERT_EQ(state_of("a"), "closing");
  b.reset();
  world_.clock.settle();
  EXPECT_EQ(state_of("a"), "busy") << "c has not waited for max_wait";
  world_.clock.advance(seconds(10));
  EXPECT_EQ(state_of("a"), "closing");
}

TEST_F(RoomTest, M16_AModelThatIsPinnedWhileItClosesStaysAndIsPinned) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  auto user = served(a);
  const auto b = request(host_model("b", 600), minutes(30));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  ASSERT_TRUE(residency_->pin(a));
  world_.clock.settle();
  EXPECT_EQ(state_of("a"), "busy");
  user->lease = {};
  world_.clock.advance(minutes(5));
  EXPECT_EQ(state_of("a"), "ready") << "beyond its ttl, and beside one who waits";
  EXPECT_TRUE(b->failed_with(Reason::kNoRoom));
}

TEST_F(RoomTest, M9_AShutdownOpensNothing) {
  const auto a = host_model("a", 600);
  const auto user = served(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  residency_->shutdown(minutes(5), [] {});
  world_.clock.settle();
  EXPECT_EQ(state_of("a"), "closing");
  EXPECT_EQ(world_.events.last("model.reopened"), nullptr);
}

TEST_F(RoomTest, M13_AShorterSwapDrainCountsForWhatClosesAlready) {
  scripts_["a"].token_every = minutes(1);
  const auto a = host_model("a", 600);
  const auto user = served(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_EQ(state_of("a"), "closing");
  limits_.swap_drain = seconds(5);
  residency_->use_waits(limits_);
  world_.clock.advance(seconds(8));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(last("model.evicted", "cause"), "closing");
}

TEST_F(RoomTest, M13_SwapDrainBoundsHowLongARequestMayGoOn) {
  limits_.swap_drain = seconds(5);
  restart();
  scripts_["a"].token_every = minutes(1);
  const auto a = host_model("a", 600);
  const auto user = served(a);
  const auto sink = std::make_shared<TestSink>();
  const auto call = user->lease.worker().generate({}, world_.clock.now() + minutes(30), sink);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(14));
  EXPECT_EQ(sink->ends, 0);
  world_.clock.advance(seconds(2));
  EXPECT_EQ(sink->ends, 1);
  std::optional<Error> why;
  residency_->explain_break(user->lease.instance_id(),
                            [&](Error error) { why = std::move(error); });
  world_.clock.settle();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->reason, Reason::kDraining);
  user->lease = {};
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease);
}

// Two clients, each of which asks again as soon as it was answered; an answer takes a second.
class TwoClients : public RoomTest {
 protected:
  struct Client {
    std::shared_ptr<catalog::Model> model;
    std::unique_ptr<TestClient> claim{};
    SteadyTime asked{};
    SteadyTime until{};
    int left = 20;
  };

  void run(Client& client) {
    const SteadyTime now = world_.clock.now();
    if (client.claim && client.claim->lease) {
      if (client.until == SteadyTime()) {
        worst_ = std::max(worst_, now - client.asked);
        client.until = now + seconds(1);
      }
      if (now < client.until) return;
      client.claim.reset();
    }
    if (client.claim || client.left == 0) return;
    --client.left;
    client.until = {};
    client.asked = now;
    client.claim = request(client.model, minutes(10));
  }

  Duration worst_{};
};

TEST_F(TwoClients, M13_T39_ABABBecomesRunsOfEachAndNobodyWaitsBeyondTheBound) {
  Client a{host_model("a", 600)};
  Client b{host_model("b", 600)};
  const auto busy = [](const Client& client) { return client.left > 0 || client.claim; };
  for (int step = 0; step < 20 * 60 * 10 && (busy(a) || busy(b)); ++step) {
    run(a);
    run(b);
    world_.clock.advance(milliseconds(100));
  }
  EXPECT_FALSE(busy(a) || busy(b));
  // First come, first served would load a model for each of the 40 requests.
  EXPECT_LE(loads().size(), 8U) << loads();
  EXPECT_GE(residency_->room_counters().swaps_avoided, 20U);
  // max_wait, a running request, a stop and a load.
  EXPECT_LE(worst_, seconds(10) + seconds(1) + seconds(2));
  EXPECT_LE(residency_->room_counters().worst_wait, seconds(13));
  EXPECT_GE(residency_->room_counters().worst_wait, seconds(5));
}

}  // namespace
}  // namespace berth::residency
