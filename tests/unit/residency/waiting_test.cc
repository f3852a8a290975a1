#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "supervisor/residency/residency.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

using testing::HasSubstr;

TEST_F(ResidencyTest, M13_LeasesAreLimitedToTheWorkersSequences) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(request(demo_));
  world_.clock.advance(seconds(2));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(static_cast<bool>(clients[static_cast<std::size_t>(i)]->lease), i < 2) << i;
  }
  EXPECT_EQ(residency_->instances().at(0).waiting, 3U);
}

TEST_F(ResidencyTest, M13_TheRestWaitInOrderAndLearnTheirPosition) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(request(demo_));
  world_.clock.advance(seconds(2));
  EXPECT_EQ(clients[2]->progress.back().queue_position, 1U);
  EXPECT_EQ(clients[4]->progress.back().queue_position, 3U);
  clients[0]->lease = {};
  world_.clock.settle();
  EXPECT_TRUE(clients[2]->lease);
  world_.clock.advance(milliseconds(100));
  EXPECT_EQ(clients[4]->progress.back().queue_position, 2U);
  clients[3].reset();
  world_.clock.advance(milliseconds(100));
  EXPECT_EQ(clients[4]->progress.back().queue_position, 1U);
  clients[1]->lease = {};
  world_.clock.settle();
  EXPECT_TRUE(clients[4]->lease);
}

TEST_F(ResidencyTest, M13_PositionsAreToldNowAndThenAndToWhoIsNewAtOnce) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(request(demo_));
  world_.clock.advance(seconds(2));
  for (int i = 0; i < 50; ++i) clients.push_back(request(demo_));
  world_.clock.settle();
  const TestClient& last = *clients.back();
  ASSERT_EQ(last.progress.size(), 1U);
  EXPECT_EQ(last.progress.back().queue_position, 50U);
  // A place is free forty times in one moment.
  for (std::size_t i = 0; i < 40; ++i) {
    clients[i]->lease = {};
    world_.clock.settle();
  }
  EXPECT_EQ(last.progress.size(), 1U);
  world_.clock.advance(milliseconds(100));
  ASSERT_EQ(last.progress.size(), 2U);
  EXPECT_EQ(last.progress.back().queue_position, 10U);
  world_.clock.advance(seconds(1));
  EXPECT_EQ(last.progress.size(), 2U);
}

TEST_F(ResidencyTest, M13_NobodyOvertakesTheQueue) {
  sim::WorkerScript one;
  one.sequences = 1;
  script(one);
  auto holder = served(demo_);
  const auto waiting = request(demo_);
  holder->lease = {};  // on its way back
  const auto late = request(demo_);
  world_.clock.settle();
  EXPECT_TRUE(waiting->lease);
  EXPECT_FALSE(late->lease);
}

TEST_F(ResidencyTest, M13_TheQueueOfAModelIsBounded) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 257; ++i) clients.push_back(request(demo_));
  world_.clock.settle();
  EXPECT_EQ(clients[255]->answers, 0);
  ASSERT_TRUE(clients[256]->failed_with(Reason::kQueueFull));
  EXPECT_THAT(clients[256]->error->message, HasSubstr("256 requests wait for demo"));
  EXPECT_TRUE(clients[256]->error->extras->retry_after_seconds);
  EXPECT_EQ(clients[256]->error->extras->limit, 256U);
}

TEST_F(ResidencyTest, M13_AllQueuesTogetherAreBounded) {
  Limits limits;
  limits.waiters_total = 3;
  Residency residency(world_.environment(), limits);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (const char* name : {"a", "b", "c", "d"}) {
    clients.push_back(std::make_unique<TestClient>());
    clients.back()->claim = residency.acquire(sim::make_model(name), RequestClass::kForeground,
                                              world_.clock.now() + minutes(5), *clients.back());
  }
  world_.clock.settle();
  EXPECT_TRUE(clients[3]->failed_with(Reason::kQueueFull));
  EXPECT_EQ(residency.state_of("d"), "absent") << "a refused request starts nothing";
  clients[0].reset();
  TestClient again;
  again.claim = residency.acquire(sim::make_model("d"), RequestClass::kForeground,
                                  world_.clock.now() + minutes(5), again);
  world_.clock.advance(seconds(3));
  EXPECT_TRUE(again.lease);
}

TEST_F(ResidencyTest, M19_AClientsOwnDeadlineEndsItsWait) {
  sim::WorkerScript slow;
  slow.load = minutes(5);
  script(slow);
  const auto client = request(demo_, seconds(30));
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, seconds(30));
  ASSERT_TRUE(client->failed_with(Reason::kDeadline));
  EXPECT_THAT(client->error->message, HasSubstr("within 30.0 s"));
  EXPECT_THAT(client->error->message, HasSubstr("weights"));
  world_.clock.advance(minutes(6));
  EXPECT_EQ(state(), "ready") << "the load goes on (L5)";
}

TEST_F(ResidencyTest, M19_QueueTimeoutBoundsEveryWait) {
  sim::WorkerScript slow;
  slow.load = minutes(25);
  script(slow);
  const auto client = request(demo_, minutes(60));
  const SteadyTime start = world_.clock.now();
  run_until_answered(*client);
  EXPECT_EQ(world_.clock.now() - start, minutes(10));
  EXPECT_TRUE(client->failed_with(Reason::kDeadline));
}

TEST_F(ResidencyTest, M19_AWaitForAPlaceEndsToo) {
  sim::WorkerScript one;
  one.sequences = 1;
  script(one);
  const auto holder = served(demo_);
  const auto client = request(demo_, seconds(5));
  run_until_answered(*client);
  ASSERT_TRUE(client->failed_with(Reason::kDeadline));
  EXPECT_THAT(client->error->message, HasSubstr("number 1 of the queue"));
}

TEST_F(ResidencyTest, M19_ADeadlineThatHasPassedIsRefused) {
  const auto client = request(demo_, Duration::zero());
  world_.clock.settle();
  EXPECT_TRUE(client->failed_with(Reason::kDeadline));
  EXPECT_EQ(state(), "absent");
}

// T38: a request for another model never ends what runs on the first.
TEST_F(ResidencyTest, T38_ARequestForAnotherModelEndsNothing) {
  const auto client = served(demo_);
  const auto sink = std::make_shared<TestSink>();
  const auto call = client->lease.worker().generate({}, world_.clock.now() + minutes(1), sink);
  const auto other = served(sim::make_model("other"));
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(sink->end->has_value());
  EXPECT_EQ(sink->text, "Hello, world.");
}

TEST_F(ResidencyTest, AnAnswerMayDropItsClaimAndAskAgain) {
  auto second = std::make_unique<TestClient>();
  const auto first = request(demo_);
  first->then = [&] {
    first->claim.reset();
    first->lease = {};
    second->claim = residency_->acquire(demo_, RequestClass::kForeground,
                                        world_.clock.now() + minutes(1), *second);
    EXPECT_EQ(second->answers, 0);
  };
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(second->lease);
}

TEST_F(ResidencyTest, AProgressReportMayEndEverybodysClaim) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(request(demo_));
  clients[0]->then_progress = [&] {
    for (const auto& client : clients) client->claim.reset();
  };
  world_.clock.advance(seconds(2));
  for (const auto& client : clients) EXPECT_EQ(client->answers, 0);
  EXPECT_EQ(state(), "ready");
}

TEST_F(ResidencyTest, AnAnswerMayUnloadByForce) {
  const auto first = request(demo_);
  const auto second = request(demo_);
  bool unloaded = false;
  first->then = [&] {
    residency_->unload("demo", true, [&](const Result<UnloadOutcome>& outcome) {
      unloaded = outcome.has_value();
    });
  };
  world_.clock.advance(seconds(2));
  EXPECT_TRUE(unloaded);
  EXPECT_EQ(second->answers, 1);
  EXPECT_EQ(state(), "absent");
}

TEST_F(ResidencyTest, AClaimDroppedBeforeItsAnswerGivesItsPlaceBack) {
  served(demo_)->lease = {};
  world_.clock.settle();
  auto client = request(demo_);
  EXPECT_EQ(residency_->instances().at(0).active, 1U);
  client.reset();
  world_.clock.settle();
  EXPECT_EQ(residency_->instances().at(0).active, 0U);
}

}  // namespace
}  // namespace berth::residency
