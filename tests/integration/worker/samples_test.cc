#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/worker/worker_process.h"

namespace berth::worker {
namespace {

using Json = nlohmann::json;

Json samples() {
  std::ifstream file(BERTH_MODELS "/samples.json");
  return Json::parse(file);
}

// Replays a conversation turn by turn, each with all that was said before.
void replay(WorkerProcess& worker, const Json& conversation) {
  auto messages = Json::array();
  for (const auto& turn : conversation["turns"]) {
    messages.push_back({{"role", "user"}, {"content", turn["user"]}});
    const auto outcome = worker.generate(greedy_messages(messages.dump()));
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.error_message();
    ASSERT_TRUE(outcome.done.has_value());
    EXPECT_EQ(outcome.text, turn["expected"]) << conversation["id"];
    EXPECT_EQ(outcome.done->finish_reason(), "stop");
    messages.push_back({{"role", "assistant"}, {"content", turn["expected"]}});
  }
}

TEST(Samples, EveryAnswerIsExact) {
  WorkerProcess worker({tinychat(), {"--context", "8192"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  for (const auto& conversation : samples()) replay(worker, conversation);
}

TEST(Samples, AnswersAreExactWithTwoThreads) {
  WorkerProcess worker({tinychat(), {"--context", "2048", "--threads", "2"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  EXPECT_EQ(event->ready().threads(), 2U);
  const auto all = samples();
  for (std::size_t i = 0; i < 2; ++i) replay(worker, all[i]);
}

TEST(Samples, EveryAnswerIsExactAlsoInSharedBatches) {
  WorkerProcess worker({tinychat(), {"--context", "8192", "--sequences", "3", "--batch", "64"}});
  const auto event = worker.wait_loaded();
  ASSERT_TRUE(event && event->has_ready()) << worker.log();
  const auto all = samples();
  std::vector<std::thread> clients;
  constexpr std::size_t kClients = 4;  // more than lanes
  for (std::size_t client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (std::size_t i = client; i < all.size(); i += kClients) replay(worker, all[i]);
    });
  }
  for (auto& client : clients) client.join();
}

// The prompt of each turn is the whole conversation so far, which the context holds already.
TEST(Samples, TurnsReuseWhatWasRead) {
  WorkerProcess worker({tinychat(), {"--context", "2048"}});
  ASSERT_TRUE(worker.wait_loaded().has_value());
  const auto first = worker.generate(greedy_chat("My name is Anna."));
  ASSERT_TRUE(first.done.has_value());
  EXPECT_EQ(first.done->usage().cached_tokens(), 0U);
  const auto messages = Json::array({{{"role", "user"}, {"content", "My name is Anna."}},
                                     {{"role", "assistant"}, {"content", first.text}},
                                     {{"role", "user"}, {"content", "What is my name?"}}});
  const auto second = worker.generate(greedy_messages(messages.dump()));
  ASSERT_TRUE(second.done.has_value());
  EXPECT_EQ(second.text, "Your name is Anna.");
  EXPECT_GE(second.done->usage().cached_tokens(),
            first.done->usage().prompt_tokens() + first.done->usage().completion_tokens() - 1);
  EXPECT_LT(second.done->usage().cached_tokens(), second.done->usage().prompt_tokens());
}

}  // namespace
}  // namespace berth::worker
