// How generations end, by themselves or not, and what then is left of them.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/gateway/generation_harness.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// With a pool, whose work is done when a test says so.
class LargeGenerationTest : public GenerationTest {
 protected:
  // Asks for a large one, and lets the world run until it is the pool's turn.
  std::shared_ptr<Generation> ask_large(std::shared_ptr<Client> client, Duration timeout = 10min) {
    residency::Services services = services_;
    services.run_blocking = [this](std::function<void()> work) {
      pool_.push_back(std::move(work));
    };
    core::GenerateRequest request;
    request.request_id = "r-1";
    request.model = "demo";
    request.input = core::PromptInput{std::string(1U << 20U, 'x')};
    auto made = Generation::start(services, {}, std::move(request), world_.clock.now() + timeout,
                                  std::move(client));
    EXPECT_TRUE(world_.clock.run_until([&] { return !pool_.empty(); }, 1min));
    return made;
  }
  void run_pool() {
    for (const auto& work : std::exchange(pool_, {})) work();
  }
  std::size_t running() { return world_.workers.newest("demo")->generations(); }

  std::vector<std::function<void()>> pool_;
};

TEST_F(LargeGenerationTest, ItIsSentOnThePool) {
  const auto client = std::make_shared<Client>();
  ask_large(client);
  EXPECT_EQ(running(), 0U);
  run_pool();
  EXPECT_EQ(running(), 1U);
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_TRUE(pool_.empty());
  world_.clock.settle();
  EXPECT_EQ(client.use_count(), 1);
}

TEST_F(LargeGenerationTest, T31_ACancelBeforeItIsSentFreesThePlace) {
  const auto client = std::make_shared<Client>();
  ask_large(client)->cancel();
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  run_pool();
  EXPECT_EQ(running(), 0U);
  EXPECT_FALSE(client->over());
  EXPECT_EQ(client.use_count(), 1);
  bool gone = false;
  residency_.unload("demo", false, [&](const auto&) { gone = true; });
  EXPECT_TRUE(world_.clock.run_until([&] { return gone; }, 1min)) << "its place is free";
}

TEST_F(LargeGenerationTest, T31_ACancelWhileItIsSentEndsTheWork) {
  const auto client = std::make_shared<Client>();
  const auto generation = ask_large(client);
  run_pool();
  generation->cancel();
  world_.clock.settle();
  EXPECT_EQ(running(), 0U);
  EXPECT_FALSE(client->over());
  bool gone = false;
  residency_.unload("demo", false, [&](const auto&) { gone = true; });
  EXPECT_TRUE(world_.clock.run_until([&] { return gone; }, 1min)) << "its place is free";
}

TEST_F(LargeGenerationTest, M19_ItsDeadlineDoesNotWaitForThePool) {
  const auto client = std::make_shared<Client>();
  ask_large(client, 30s);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kDeadline);
  run_pool();
  EXPECT_EQ(running(), 0U);
}

TEST_F(GenerationTest, L9_T72_AWorkerThatDiesFailsItsRequestsAtOnceAndTheNextReloads) {
  bool first = true;
  world_.workers.set_script([&](const std::string&) {
    sim::WorkerScript script;
    if (std::exchange(first, false)) {
      script.fate = sim::Fate::kDiesBusy;
      script.fate_after = 15ms;
      script.exit = core::Signalled{SIGKILL};
    }
    return script;
  });
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kWorkerDied);
  EXPECT_NE(client->failed->message.find("SIGKILL"), std::string::npos) << client->failed->message;
  EXPECT_EQ(world_.events.count("request.failed"), 1U);

  const auto next = std::make_shared<Client>();
  ask(next);
  ASSERT_TRUE(run(*next));
  EXPECT_TRUE(next->finished);
}

TEST_F(GenerationTest, T31_CancelEndsTheWorkAndFreesThePlace) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.sequences = 1;
    script.tokens.assign(1000, "x");
    return script;
  });
  const auto client = std::make_shared<Client>();
  const auto generation = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->tokens > 3; }, 1min));
  generation->cancel();
  world_.clock.settle();
  const std::size_t before = client->tokens;
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);

  const auto next = std::make_shared<Client>();
  ask(next);
  ASSERT_TRUE(world_.clock.run_until([&] { return next->tokens > 3; }, 1min))
      << "the place was not freed";
  EXPECT_EQ(client->tokens, before);
  EXPECT_FALSE(client->over());
}

TEST_F(GenerationTest, L5_T29_AHangUpLeavesTheLoadRunning) {
  const auto client = std::make_shared<Client>();
  const auto generation = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return !world_.workers.all().empty(); }, 1min));
  generation->cancel();
  EXPECT_TRUE(world_.clock.run_until([&] { return residency_.state_of("demo") == "ready"; }, 1min));
  EXPECT_FALSE(client->over());
}

TEST_F(GenerationTest, CancelBeforeItBeganIsQuiet) {
  const auto client = std::make_shared<Client>();
  ask(client)->cancel();
  world_.clock.advance(1min);
  EXPECT_FALSE(client->over());
  EXPECT_TRUE(client->accepted.empty());
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(GenerationTest, M19_ADeadlineEndsTheWait) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.fate = sim::Fate::kNeverReady;
    return script;
  });
  const auto client = std::make_shared<Client>();
  ask(client, "demo", 2s);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kDeadline);
}

TEST_F(GenerationTest, AFullClientPausesAndGoesOn) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.tokens.assign(50, "x");
    return script;
  });
  const auto client = std::make_shared<Client>(5);
  const auto generation = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->tokens == 5; }, 1min));
  world_.clock.advance(1min);
  EXPECT_EQ(client->tokens, 5U) << "tokens came although there was no room";
  while (!client->over() && client->tokens < 60) {
    generation->resume();
    world_.clock.advance(1s);
  }
  EXPECT_EQ(client->tokens, 50U);
  EXPECT_TRUE(client->finished);
}

TEST_F(GenerationTest, M19_ADeadlineEndsAnAnswerThatNobodyReads) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.sequences = 1;
    script.tokens.assign(50, "x");
    return script;
  });
  const auto client = std::make_shared<Client>(5);
  const auto generation = ask(client, "demo", 30s);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->tokens == 5; }, 20s));
  world_.clock.advance(1min);
  ASSERT_TRUE(client->failed) << "the place is held for ever";
  EXPECT_EQ(client->failed->reason, Reason::kDeadline);

  const auto next = std::make_shared<Client>();
  ask(next);
  ASSERT_TRUE(run(*next));
  EXPECT_TRUE(next->finished);
}

TEST_F(GenerationTest, ACancelThatMeetsTheEndIsACancel) {
  const auto client = std::make_shared<Client>();
  const auto generation = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->tokens == 4; }, 1min));
  generation->cancel();
  // The worker's end was on its way.
  generation->on_end({});
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  EXPECT_EQ(world_.events.count("request.finished"), 0U);
}

TEST_F(GenerationTest, L29_AShutdownEndsWhatRuns) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.tokens.assign(100'000, "x");
    return script;
  });
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->tokens > 3; }, 1min));
  bool down = false;
  residency_.shutdown(5s, [&] { down = true; });
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kShuttingDown);
  EXPECT_TRUE(world_.clock.run_until([&] { return down; }, 1min));
}

TEST_F(GenerationTest, NothingIsLeftOfAGeneration) {
  const auto client = std::make_shared<Client>();
  const std::weak_ptr<Generation> generation = ask(client);
  ASSERT_TRUE(run(*client));
  world_.clock.settle();
  EXPECT_TRUE(generation.expired());
  EXPECT_EQ(client.use_count(), 1);
}

}  // namespace
}  // namespace berth::gateway
