#include "supervisor/gateway/generation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/gateway/generation_harness.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

TEST_F(GenerationTest, AColdModelIsLoadedAndAnswers) {
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->finished);
  EXPECT_EQ(client->accepted, "demo");
  EXPECT_EQ(client->text, "Hello, world.");
  EXPECT_FALSE(client->waits.empty()) << "the load was not shown";
  EXPECT_EQ(client->finished->model, "demo");
  EXPECT_EQ(client->finished->instance_id, world_.workers.newest("demo")->instance());
  EXPECT_GT(client->finished->done.timings.load_us, 0U);
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.finished"), 1U);
}

TEST_F(GenerationTest, TextsThatWaitForAModelAreBounded) {
  services_.waiting->set_most(std::uint64_t{4} << 20);
  const auto large = [this](const std::shared_ptr<Client>& client) {
    core::GenerateRequest request;
    request.request_id = "r-1";
    request.model = "demo";
    request.input = core::PromptInput{std::string(2 << 20, 'x')};
    Generation::start(services_, {}, std::move(request), world_.clock.now() + 10min, client);
  };
  const auto first = std::make_shared<Client>();
  large(first);
  const auto second = std::make_shared<Client>();
  large(second);
  ASSERT_TRUE(run(*second));
  ASSERT_TRUE(second->failed);
  EXPECT_EQ(second->failed->reason, Reason::kQueueFull);
  const auto small = std::make_shared<Client>();
  ask(small);
  ASSERT_TRUE(run(*small));
  EXPECT_TRUE(small->finished);
  ASSERT_TRUE(run(*first));
  EXPECT_TRUE(first->finished);
  // What was sent waits no more.
  const auto third = std::make_shared<Client>();
  large(third);
  ASSERT_TRUE(run(*third));
  EXPECT_TRUE(third->finished);
}

TEST_F(GenerationTest, AReadyModelAnswersWithoutALoad) {
  const auto first = std::make_shared<Client>();
  ask(first);
  ASSERT_TRUE(run(*first));
  const auto second = std::make_shared<Client>();
  ask(second, "gpt");
  ASSERT_TRUE(run(*second));
  ASSERT_TRUE(second->finished);
  EXPECT_EQ(second->accepted, "demo") << "an alias means its model";
  EXPECT_EQ(second->finished->done.timings.load_us, 0U);
  EXPECT_EQ(world_.workers.all().size(), 1U);
}

TEST_F(GenerationTest, WhatWasWaitedBeforeTheLoadIsNoLoad) {
  world_.workers.set_script([](const std::string& /*model*/) {
    sim::WorkerScript slow;
    slow.term_to_exit = 3s;
    return slow;
  });
  const auto first = std::make_shared<Client>();
  ask(first);
  ASSERT_TRUE(run(*first));
  world_.clock.settle();
  residency_.unload("demo", false, [](const auto& outcome) { EXPECT_TRUE(outcome); });
  const auto second = std::make_shared<Client>();
  ask(second);
  ASSERT_TRUE(run(*second));
  ASSERT_TRUE(second->finished);
  const core::Timings& timings = second->finished->done.timings;
  EXPECT_GE(timings.queue_us, 2'900'000U);
  EXPECT_GT(timings.load_us, 100'000U);
  EXPECT_LT(timings.load_us, 1'000'000U);
}

TEST_F(GenerationTest, L27_ARequestStartsAProgramLikeAnyModel) {
  const auto client = std::make_shared<Client>();
  ask(client, "program");
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_EQ(client->text, "Hello, world.");
}

TEST_F(GenerationTest, L27_AServerThatStopsSaysSoOfAProgramToo) {
  bool stopped = false;
  residency_.shutdown(0s, [&stopped] { stopped = true; });
  const auto client = std::make_shared<Client>();
  ask(client, "program");
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kShuttingDown);
  world_.clock.settle();
  EXPECT_TRUE(stopped);
}

TEST_F(GenerationTest, AnUnknownModelIsRefusedWithNearNames) {
  const auto client = std::make_shared<Client>();
  ask(client, "dmeo");
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kUnknownModel);
  ASSERT_TRUE(client->failed->extras);
  EXPECT_EQ(client->failed->extras->suggestions.at(0), "demo");
  EXPECT_TRUE(client->accepted.empty());
  EXPECT_EQ(world_.events.count("request.refused"), 1U);
}

TEST_F(GenerationTest, T1_AFailedLoadCarriesItsCause) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.fate = sim::Fate::kSaysLoadFailed;
    return script;
  });
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kLoadFailed);
  ASSERT_TRUE(client->failed->extras && client->failed->extras->failure);
  EXPECT_EQ(client->failed->extras->failure->failure_class, "permanent");
  EXPECT_FALSE(client->failed->extras->failure->log_tail.empty());
}

}  // namespace
}  // namespace berth::gateway
