#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/room_harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

TEST_F(RoomTest, M14_WhatNeverFitsIsRefusedWithItsNumbers) {
  world_.memory.would_fit = WouldFit{2048, 1};
  restart();
  const auto client = request(host_model("a", 1500));
  world_.clock.settle();
  ASSERT_TRUE(client->failed_with(Reason::kInsufficientMemory));
  const MemoryShortage& memory = *client->error->extras->memory;
  EXPECT_EQ(memory.domain, "host");
  EXPECT_EQ(memory.needed_bytes, 1500 * kMiB);
  EXPECT_EQ(memory.limit_bytes, 1000 * kMiB);
  EXPECT_EQ(memory.deficit_bytes, 500 * kMiB);
  ASSERT_TRUE(memory.would_fit);
  EXPECT_EQ(memory.would_fit->context, 2048U);
  EXPECT_THAT(client->error->message, HasSubstr("2048 tokens"));
  EXPECT_EQ(loads(), "");
  EXPECT_EQ(last("model.refused", "why"), "never_fits");
  EXPECT_EQ(residency_->room_counters().refusals.at("never_fits"), 1U);
}

TEST_F(RoomTest, M14_AProgramThatWasSeenToTakeTooMuchIsRefusedWithTheWayOut) {
  const auto program = host_model("program", 2000);
  program->settings.kind = catalog::Kind::kCommand;
  const auto refusal = [&] {
    const auto client = request(program);
    world_.clock.settle();
    EXPECT_TRUE(client->failed_with(Reason::kInsufficientMemory));
    return client->error ? client->error->message : std::string();
  };
  EXPECT_THAT(refusal(), testing::HasSubstr("declare `memory` in its section if it takes less by "
                                            "now, or raise the budget of host."));
  program->settings.memory = {{"host", 2000 * kMiB}};
  EXPECT_THAT(refusal(), testing::HasSubstr("Its `memory` says so: correct it, or raise the budget "
                                            "of host."));
}

TEST_F(RoomTest, M14_NothingIsEvictedForWhatNeverFits) {
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto client = request(host_model("b", 1500));
  world_.clock.advance(seconds(20));
  EXPECT_TRUE(client->failed_with(Reason::kInsufficientMemory));
  EXPECT_EQ(state_of("a"), "ready");
}

TEST_F(RoomTest, L25_T13_NothingIsEvictedForAFileThatCannotBeLoaded) {
  world_.memory.files_are_sane = [](const std::string& model) { return model != "b"; };
  restart();
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto broken = request(host_model("b", 600));
  world_.clock.advance(seconds(1));
  ASSERT_TRUE(broken->failed_with(Reason::kLoadFailed));
  EXPECT_THAT(broken->error->message, HasSubstr("ends too early"));
  EXPECT_EQ(state_of("a"), "ready");
  const auto sane = request(host_model("c", 600));
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(sane->lease);
}

TEST_F(RoomTest, L22_AStandingFailureEvictsNobody) {
  scripts_["b"].fate = sim::Fate::kSaysLoadFailed;
  const auto b = host_model("b", 600);
  run_until_answered(*request(b));
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto again = request(b);
  world_.clock.advance(seconds(20));
  EXPECT_TRUE(again->failed_with(Reason::kLoadFailed));
  EXPECT_EQ(state_of("a"), "ready");
}

TEST_F(RoomTest, T9_T10_AFailedLoadGivesItsRoomBackAndEvictsNobodyAgain) {
  scripts_["b"].fate = sim::Fate::kSaysLoadFailed;
  resident(host_model("a", 600));
  world_.clock.advance(seconds(20));
  const auto b = request(host_model("b", 600));
  run_until_answered(*b);
  EXPECT_TRUE(b->failed_with(Reason::kLoadFailed));
  const auto c = request(host_model("c", 900));
  world_.clock.advance(seconds(5));
  EXPECT_TRUE(c->lease);
  EXPECT_EQ(world_.events.count("model.evicted"), 1U);
}

TEST_F(RoomTest, M19_WhoWaitsForMemoryLearnsForWhat) {
  resident(host_model("a", 600));
  const auto user = served(host_model("a", 600));
  const auto b = request(host_model("b", 600), seconds(5));
  world_.clock.advance(seconds(6));
  ASSERT_TRUE(b->failed_with(Reason::kDeadline));
  EXPECT_THAT(b->error->message, HasSubstr("waits for memory of models that are in use"));
}

TEST_F(RoomTest, M7_ADryRunSaysWhatWouldBeDone) {
  const auto a = host_model("a", 600);
  const auto b = host_model("b", 600);
  EXPECT_EQ(core::decision_name(residency_->plan(*a).decision), "fits");
  resident(a);
  EXPECT_EQ(core::decision_name(residency_->plan(*b).decision), "park");
  world_.clock.advance(seconds(20));
  EXPECT_EQ(core::decision_name(residency_->plan(*b).decision), "evict");
  EXPECT_EQ(state_of("a"), "ready") << "nothing is done";
  EXPECT_EQ(core::decision_name(residency_->plan(*host_model("c", 2000)).decision), "refuse");
  ASSERT_EQ(residency_->memory_now().entries.size(), 1U);
  EXPECT_EQ(residency_->memory_now().entries[0].charge[0], 600 * kMiB);
}

// --- pins

TEST_F(RoomTest, M16_APinnedModelStaysWhoeverAsks) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  ASSERT_TRUE(residency_->pin(a));
  resident(a);
  world_.clock.advance(minutes(5));
  EXPECT_EQ(state_of("a"), "ready") << "not for idleness either";
  EXPECT_TRUE(residency_->instances().at(0).pinned);
  const auto b = host_model("b", 600);
  const auto client = request(b);
  world_.clock.settle();
  ASSERT_TRUE(client->failed_with(Reason::kNoRoom));
  EXPECT_EQ(client->error->extras->holder->model, "a");
  EXPECT_TRUE(client->error->extras->retry_after_seconds);
  EXPECT_TRUE(residency_->unpin("a"));
  EXPECT_FALSE(residency_->unpin("a"));
  const auto again = request(b);
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(again->lease);
}

TEST_F(RoomTest, M16_AnUnpinnedModelIsUnloadedForIdlenessAgain) {
  const auto a = host_model("a", 600);
  a->settings.ttl = minutes(1);
  resident(a);
  ASSERT_TRUE(residency_->pin(a));
  world_.clock.advance(minutes(5));
  EXPECT_EQ(state_of("a"), "ready");
  residency_->unpin("a");
  world_.clock.advance(minutes(1) + seconds(1));
  EXPECT_EQ(state_of("a"), "absent");
}

TEST_F(RoomTest, M16_WhatDoesNotFitBesideOtherPinsIsNotPinned) {
  ASSERT_TRUE(residency_->pin(host_model("a", 600)));
  const Status second = residency_->pin(host_model("b", 600));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::kNoRoom);
  const Status large = residency_->pin(host_model("c", 1600));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().reason, Reason::kInsufficientMemory);
  EXPECT_FALSE(residency_->pinned("b"));
  EXPECT_TRUE(residency_->pin(host_model("d", 300)));
  EXPECT_TRUE(residency_->pin(device_model("e", 900)));
}

TEST_F(RoomTest, M16_APinCountsWhatItsModelTakesAndNotWhatOthersDo) {
  resident(host_model("a", 700));
  EXPECT_TRUE(residency_->pin(host_model("b", 700))) << "the other one can go for it";
}

TEST_F(RoomTest, M16_UnloadingWhatIsPinnedTakesForce) {
  const auto a = host_model("a", 600);
  resident(a);
  ASSERT_TRUE(residency_->pin(a));
  std::optional<Result<UnloadOutcome>> outcome;
  residency_->unload("a", false, [&](Result<UnloadOutcome> how) { outcome = std::move(how); });
  world_.clock.settle();
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_EQ(outcome->error().reason, Reason::kConflict);
  EXPECT_EQ(state_of("a"), "ready");
  residency_->unload("a", true, [&](Result<UnloadOutcome> how) { outcome = std::move(how); });
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(*outcome);
  EXPECT_EQ(state_of("a"), "absent");
}

}  // namespace
}  // namespace berth::residency
