#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

TEST_F(RoomTest, T50_BytesDecideAndNotHowManyThereAre) {
  for (const char* name : {"a", "b", "c", "d"}) resident(host_model(name, 250));
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(state_of(name), "ready") << name;
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
}

TEST_F(RoomTest, M7_DomainsAreCountedApart) {
  resident(host_model("a", 900));
  resident(device_model("b", 900));
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(residency_->instances().at(1).charge[kDevice], 900 * kMiB);
}

TEST_F(RoomTest, M8_AnIdleModelGoesForAnotherOnceItsGraceIsOver) {
  resident(host_model("a", 600));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(9));
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(b->progress.back().phase, "queued");
  EXPECT_EQ(b->progress.back().waits_for, "grace");
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(state_of("a"), "absent");
  EXPECT_EQ(last("model.evicted", "model"), "a");
  EXPECT_EQ(last("model.evicted", "cause"), "idle");
  EXPECT_EQ(last("model.evicted", "for_model"), "b");
  EXPECT_EQ(last("model.evicted", "for_whom"), "request");
  EXPECT_EQ(last("instance.stopping", "cause"), "evicted");
  EXPECT_EQ(residency_->room_counters().evictions.at("idle"), 1U);
}

// Else each would take the whole budget as soon as the other one has gone for it.
TEST_F(RoomTest, M6_TwoThatFitTogetherDriveEachOtherOutOnceAtMost) {
  const auto a = host_model("a", 450);
  const auto b = host_model("b", 450);
  for (const char* name : {"a", "b"}) {
    world_.memory.needs_alone[name] = {
        {.bytes = core::DomainBytes::in(core::kHostDomain, 900 * kMiB)}};
  }
  resident(a);
  const auto first = request(b);
  world_.clock.advance(seconds(11));
  ASSERT_TRUE(first->lease);
  EXPECT_EQ(state_of("a"), "absent");
  resident(a);
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(state_of("b"), "busy");
  EXPECT_EQ(world_.events.count("model.evicted"), 1U);
}

TEST_F(RoomTest, M6_TwoThatAreAskedForAtOnceShareTheBudget) {
  const auto a = host_model("a", 450);
  const auto b = host_model("b", 450);
  for (const char* name : {"a", "b"}) {
    world_.memory.needs_alone[name] = {
        {.bytes = core::DomainBytes::in(core::kHostDomain, 900 * kMiB)}};
  }
  const auto first = request(a);
  const auto second = request(b);
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(first->lease);
  EXPECT_TRUE(second->lease);
}

TEST_F(RoomTest, L25_NobodyGoesForAModelWhoseFileBrokeWhileItWasWaitedFor) {
  const std::shared_ptr<const catalog::Model> other = host_model("a", 600);
  const std::shared_ptr<catalog::Model> asked = host_model("b", 600);
  std::shared_ptr<const catalog::Model> known = asked;
  world_.find_model = [&](const std::string& name) { return name == "b" ? known : other; };
  restart();
  resident(sim::make_model("a"));
  const auto b = request(asked);
  world_.clock.advance(seconds(5));
  auto broken = std::make_shared<catalog::Model>(*known);
  broken->problem = "b.gguf is cut off.";
  known = broken;
  world_.clock.advance(seconds(6));
  EXPECT_TRUE(b->error);
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(world_.events.count("model.evicted"), 0U);
}

TEST_F(RoomTest, L25_FilesAreLookedAtAgainWhereTheLastLookIsOld) {
  const auto a = host_model("a", 600);
  bool sane = true;
  std::unique_ptr<TestClient> user;
  world_.memory.files_are_sane = [&](const std::string& /*model*/) {
    if (user == nullptr) user = request(a);  // so that a does not go for this look
    return sane;
  };
  restart();
  resident(a);
  world_.clock.advance(seconds(11));
  const auto b = request(host_model("b", 600));
  world_.clock.settle();
  ASSERT_TRUE(user && user->lease);
  ASSERT_EQ(b->answers, 0);
  sane = false;
  world_.clock.advance(seconds(5));
  user->lease = {};
  world_.clock.advance(seconds(30));
  EXPECT_TRUE(b->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(state_of("a"), "ready");
}

TEST_F(RoomTest, M14_WhoWaitsForAModelThatIsGoneLearnsThat) {
  std::map<std::string, std::shared_ptr<const catalog::Model>> catalog;
  world_.find_model = [&](const std::string& name) { return catalog[name]; };
  restart();
  const auto a = host_model("a", 600);
  const auto b = host_model("b", 600);
  const auto c = host_model("c", 600);
  catalog = {{"a", a}, {"b", b}, {"c", c}};
  resident(a);
  const auto gone = request(b);
  const auto taken = request(c);
  world_.clock.advance(seconds(5));
  ASSERT_EQ(gone->answers + taken->answers, 0);
  catalog.erase("b");
  catalog["c"] = a;  // its name is an alias of another one now
  residency_->catalog_changed();
  world_.clock.settle();
  for (const auto* client : {gone.get(), taken.get()}) {
    ASSERT_TRUE(client->failed_with(Reason::kUnknownModel));
    EXPECT_THAT(client->error->message, testing::HasSubstr("is not in the catalogue any more"));
  }
  EXPECT_EQ(state_of("a"), "ready");
}

TEST_F(RoomTest, M8_AVictimThatGetsARequestBeforeItsStopIsLeftAlone) {
  const auto a = host_model("a", 600);
  resident(a);
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(9));
  const auto user = served(a);
  world_.clock.advance(milliseconds(999));
  EXPECT_EQ(state_of("a"), "busy");
  EXPECT_FALSE(b->lease);
}

TEST_F(RoomTest, M8_T29_TheAgeOfADemandSurvivesHangUps) {
  resident(host_model("a", 600));
  const auto b = host_model("b", 600);
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto client = request(b, seconds(4));
    world_.clock.advance(seconds(4) - milliseconds(1));
    EXPECT_EQ(state_of("a"), attempt < 2 ? "ready" : "absent") << attempt;
  }
  world_.clock.settle();
  EXPECT_EQ(state_of("b"), "ready");
}

TEST_F(RoomTest, M10_TheNextLoadWaitsUntilTheDevicesFigureFell) {
  scripts_["a"].memory_comes_back = seconds(2);
  resident(device_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = request(device_model("b", 600));
  world_.clock.advance(seconds(2));
  EXPECT_EQ(state_of("a"), "absent");
  EXPECT_EQ(loads(), "a");
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(last("memory.returned", "proof"), "device");
  EXPECT_EQ(last("memory.returned", "returned_bytes"), std::to_string(600 * kMiB));
}

TEST_F(RoomTest, M10_AfterFiveSecondsItCountsAsBackAndAnEventSaysSo) {
  scripts_["a"].memory_comes_back = seconds(60);
  resident(device_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = request(device_model("b", 600));
  world_.clock.advance(seconds(5));
  EXPECT_EQ(loads(), "a");
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(last("memory.not_returned", "attributed_bytes"), std::to_string(600 * kMiB));
  EXPECT_EQ(last("memory.not_returned", "returned_bytes"), "0");
}

TEST_F(RoomTest, M10_WithoutAFigureExitAndAFreshSampleAreTheProof) {
  world_.memory.sample_takes = milliseconds(700);
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(milliseconds(700));
  EXPECT_EQ(loads(), "a");
  world_.clock.advance(milliseconds(500));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(last("memory.returned", "proof"), "exit");
}

TEST_F(RoomTest, M10_ASamplerThatHangsHoldsNobodyUpForMoreThanFiveSeconds) {
  world_.memory.sample_never_comes = true;
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(6));
  EXPECT_TRUE(b->lease);
}

TEST_F(RoomTest, L2_AStuckProcessStaysChargedAndItsLateExitCounts) {
  scripts_["a"].ignores_term = true;
  scripts_["a"].kill_to_exit = seconds(60);
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = host_model("b", 600);
  const auto early = request(b);
  world_.clock.advance(seconds(16));
  ASSERT_TRUE(early->failed_with(Reason::kNoRoom));
  ASSERT_TRUE(early->error->extras->memory);
  EXPECT_EQ(early->error->extras->memory->deficit_bytes, 200 * kMiB);
  EXPECT_EQ(early->error->extras->holder->model, "a");
  EXPECT_EQ(early->error->extras->holder->state, "stuck");
  EXPECT_TRUE(early->error->extras->retry_after_seconds);
  const auto small = request(host_model("c", 300));
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(small->lease) << "a stuck one keeps nobody else from being served";
  small->lease = {};
  world_.clock.advance(seconds(60));
  const auto late = request(b);
  world_.clock.advance(seconds(20));
  EXPECT_TRUE(late->lease);
}

TEST_F(RoomTest, M11_T20_WhoeverWaitsHasHisPlaceBeforeTheModelCanGo) {
  limits_.plan.grace = Duration::zero();
  restart();
  const auto a = request(host_model("a", 600));
  const auto b = request(host_model("b", 600));
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(a->lease);
  EXPECT_FALSE(b->lease);
  EXPECT_EQ(b->progress.back().waits_for, "clients");
  a->lease = {};
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(loads(), "ab");
}

TEST_F(RoomTest, M9_RoomThatIsMadeForTheOldestIsNotTakenByAYoungerOne) {
  scripts_["a"].term_to_exit = seconds(8);
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto old = request(host_model("b", 900));
  world_.clock.advance(seconds(1));
  EXPECT_EQ(state_of("a"), "stopping");
  const auto young = request(host_model("c", 400));
  const auto elsewhere = request(device_model("d", 400));
  world_.clock.advance(seconds(3));
  EXPECT_FALSE(young->lease) << "400 MiB are free, and 900 are wanted soon";
  EXPECT_EQ(young->progress.back().waits_for, "older_waiter");
  EXPECT_TRUE(elsewhere->lease);
  world_.clock.advance(seconds(6));
  EXPECT_TRUE(old->lease);
}

TEST_F(RoomTest, M9_AHoldEndsWithItsWaiter) {
  scripts_["a"].term_to_exit = seconds(8);
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  auto old = request(host_model("b", 900));
  world_.clock.advance(seconds(1));
  const auto young = request(host_model("c", 400));
  world_.clock.advance(seconds(1));
  EXPECT_FALSE(young->lease);
  old.reset();
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(young->lease);
}

TEST_F(RoomTest, T17_MutualSwapsEndInASeriesOfLoads) {
  limits_.plan.grace = Duration::zero();
  restart();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (const char* name : {"a", "b", "c", "d"}) clients.push_back(request(host_model(name, 700)));
  for (auto& client : clients) {
    run_until_answered(*client);
    EXPECT_TRUE(client->lease);
    client->lease = {};
  }
  EXPECT_EQ(loads(), "abcd");
}

TEST_F(RoomTest, L5_AnAbandonedLoadGoesForAnotherAfterRetryGraceAndNotTwice) {
  scripts_["a"].load = minutes(10);
  const auto a = host_model("a", 600);
  const auto b = host_model("b", 600);
  auto first = request(a, seconds(2));
  world_.clock.advance(seconds(3));
  auto other = request(b);
  world_.clock.advance(seconds(8));
  EXPECT_EQ(state_of("a"), "loading");
  EXPECT_EQ(other->progress.back().waits_for, "grace");
  world_.clock.advance(seconds(4));
  EXPECT_TRUE(other->lease);
  EXPECT_EQ(last("model.evicted", "cause"), "abandoned_load");
  EXPECT_EQ(last("load.interrupted", "cause"), "evicted");
  EXPECT_TRUE(residency_->standing_failures().empty()) << "it leaves no mark (L20)";
  other->lease = {};
  world_.clock.advance(seconds(11));
  first = request(a, seconds(30));
  world_.clock.advance(seconds(60));
  ASSERT_EQ(state_of("a"), "loading");
  other = request(b, minutes(5));
  world_.clock.advance(minutes(4));
  EXPECT_EQ(state_of("a"), "loading") << "never twice in a row";
}

TEST_F(RoomTest, I3_IdleWorkTakesNobodysRoomAndGivesWayToClients) {
  limits_.plan.grace = Duration::zero();
  restart();
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto idle = request(host_model("b", 600), minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(30));
  EXPECT_EQ(state_of("a"), "ready");
  EXPECT_EQ(idle->progress.back().waits_for, "idle_room");
  const auto beside = request(host_model("c", 300), minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(beside->lease);
  const auto client = request(host_model("d", 400));
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(client->lease);
  EXPECT_EQ(last("model.evicted", "cause"), "idle_work");
  EXPECT_EQ(last("model.evicted", "model"), "c");
}

TEST_F(RoomTest, M15_AModelThatAJobLoadedGoesWhenTheJobEnds) {
  auto job = request(host_model("a", 600), minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(2));
  ASSERT_TRUE(job->lease);
  job->lease = {};
  world_.clock.advance(seconds(1));
  EXPECT_EQ(state_of("a"), "absent");
  EXPECT_EQ(last("instance.stopping", "cause"), "job_ended");
}

TEST_F(RoomTest, M15_OneThatAClientUsedMeanwhileStays) {
  const auto a = host_model("a", 600);
  auto job = request(a, minutes(5), RequestClass::kIdle);
  world_.clock.advance(seconds(2));
  resident(a);
  job->lease = {};
  world_.clock.advance(seconds(1));
  EXPECT_EQ(state_of("a"), "ready");
}

TEST_F(RoomTest, M7_ABudgetThatWasLoweredAdmitsNothingNew) {
  resident(host_model("a", 600));
  world_.memory.domains[0].budget = 500 * kMiB;
  residency_->memory_changed();
  world_.clock.advance(seconds(1));
  EXPECT_EQ(state_of("a"), "ready") << "nobody is taken away for it";
  const auto b = request(host_model("b", 200));
  world_.clock.advance(seconds(9));
  EXPECT_FALSE(b->lease);
  world_.clock.advance(seconds(3));
  EXPECT_TRUE(b->lease);
  EXPECT_EQ(state_of("a"), "absent");
}

TEST_F(RoomTest, M3_RoomThatOthersTookIsWaitedForAndThenRefused) {
  set_foreign(0, 7500);
  const auto a = host_model("a", 600);
  const auto first = request(a);
  world_.clock.advance(seconds(5));
  EXPECT_EQ(first->progress.back().waits_for, "foreign_use");
  set_foreign(0, 0);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(first->lease);
  first->lease = {};
  world_.clock.settle();
  set_foreign(0, 7500);
  const auto second = request(host_model("b", 600));
  world_.clock.advance(seconds(11));
  ASSERT_TRUE(second->failed_with(Reason::kNoRoom));
  EXPECT_EQ(second->error->extras->memory->domain, "host");
  EXPECT_TRUE(second->error->extras->retry_after_seconds);
}

}  // namespace
}  // namespace berth::residency
