// Lanes over the real engine: what requests share must not be seen in what they say. The models are
// sure of their words, so that there are few near ties.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/integration/worker/worker_process.h"
#include "tests/models/draft_pair.h"
#include "tests/models/random_model.h"

namespace berth::worker {
namespace {

class Lanes : public testing::Test {
 protected:
  Lanes() {
    std::string pattern = "/tmp/berth-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Lanes() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }

  std::string sure_model(const std::string& architecture) {
    test_models::ModelOptions options;
    options.architecture = architecture;
    options.sureness = test_models::kSure;
    const auto model = test_models::make_model(options);
    EXPECT_TRUE(model && model->write(path(architecture)));
    return path(architecture);
  }

  std::string directory_;
};

v1::GenerateRequest request(const std::string& text, std::uint32_t max_tokens) {
  auto made = greedy_prompt(text);
  made.set_max_tokens(max_tokens);
  return made;
}

std::vector<Outcome> at_once(WorkerProcess& worker, const std::vector<v1::GenerateRequest>& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < all.size(); ++i) {
    clients.emplace_back([&, i] { outcomes[i] = worker.generate(all[i]); });
  }
  for (auto& client : clients) client.join();
  return outcomes;
}

// How far the second likeliest token was behind each that was chosen.
struct Alone {
  std::vector<int> ids;
  std::vector<float> leads;
};

Alone say_alone(WorkerProcess& worker, v1::GenerateRequest request) {
  request.set_top_logprobs(2);
  Alone alone;
  const auto outcome = worker.generate(request, [&](const auto& event, auto& /*context*/) {
    for (const auto& one : event.token().logprobs()) {
      alone.leads.push_back(one.top(0).logprob() - one.top(1).logprob());
    }
  });
  EXPECT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  alone.ids = outcome.ids;
  return alone;
}

// Batches of another size round differently: where two tokens are nearly as likely, either may
// come, and another text after it. Anything else is no rounding.
void expect_same_but_for_ties(const Alone& alone, const std::vector<int>& ids) {
  constexpr float kTie = 0.25F;
  ASSERT_EQ(alone.leads.size(), alone.ids.size());
  const auto [one, other] =
      std::mismatch(alone.ids.begin(), alone.ids.end(), ids.begin(), ids.end());
  if (one == alone.ids.end() && other == ids.end()) return;
  const auto at = static_cast<std::size_t>(one - alone.ids.begin());
  ASSERT_LT(at, alone.ids.size());
  EXPECT_LT(alone.leads[at], kTie) << "token " << at << " of " << ids.size();
}

bool becomes_ready(WorkerProcess& worker) {
  const auto event = worker.wait_loaded();
  EXPECT_TRUE(event && event->has_ready()) << worker.log();
  return event && event->has_ready();
}

std::uint32_t cached(const Outcome& outcome) {
  EXPECT_TRUE(outcome.done.has_value()) << outcome.status.error_message();
  return outcome.done ? outcome.done->usage().cached_tokens() : 0;
}

TEST_F(Lanes, DraftsLeaveTheTextAsItIs) {
  test_models::ModelOptions options;
  options.layers = 4;
  options.sureness = test_models::kSure;
  ASSERT_TRUE(test_models::write_draft_pair(options, path("target"), path("draft")));
  WorkerProcess alone({path("target"), {"--context", "1024", "--sequences", "3"}});
  WorkerProcess drafted(
      {path("target"), {"--context", "1024", "--sequences", "3", "--draft", path("draft")}});
  ASSERT_TRUE(becomes_ready(alone));
  ASSERT_TRUE(becomes_ready(drafted));

  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < 6; ++i) {
    requests.push_back(request("Prompt number " + std::to_string(i), 80));
  }
  const auto outcomes = at_once(drafted, requests);
  std::uint32_t accepted = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(outcomes[i].done.has_value()) << outcomes[i].status.error_message();
    expect_same_but_for_ties(say_alone(alone, requests[i]), outcomes[i].ids);
    EXPECT_EQ(outcomes[i].done->usage().completion_tokens(), 80U);
    accepted += outcomes[i].done->usage().accepted_tokens();
  }
  EXPECT_GT(accepted, 0U);
}

TEST_F(Lanes, ParallelRequestsReadTheirCommonPrefixOnce) {
  WorkerProcess worker({sure_model("llama"), {"--context", "2048", "--sequences", "4"}});
  ASSERT_TRUE(becomes_ready(worker));
  std::string system;
  while (system.size() < 1500) system += "You are a helpful assistant number 7. ";
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < 4; ++i) {
    requests.push_back(request(system + "Question " + std::to_string(i), 20));
  }
  const auto outcomes = at_once(worker, requests);
  int readers = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (cached(outcomes[i]) < 100) ++readers;
    // Again, now with all of the prompt but its last token in the context.
    EXPECT_GT(cached(worker.generate(requests[i])), 100U);
    expect_same_but_for_ties(say_alone(worker, requests[i]), outcomes[i].ids);
  }
  EXPECT_EQ(readers, 1);
}

TEST_F(Lanes, S8_T81_NoScopeUsesAnothersState) {
  WorkerProcess worker({sure_model("llama"), {"--context", "2048", "--sequences", "4"}});
  ASSERT_TRUE(becomes_ready(worker));
  std::string canary;
  while (canary.size() < 600) canary += "The canary sings at dawn. ";
  auto one = request(canary, 10);
  one.set_cache_scope("one");
  auto two = request(canary, 10);
  two.set_cache_scope("two");
  const auto first = at_once(worker, {one, two, request(canary, 10)});
  for (const auto& outcome : first) EXPECT_EQ(cached(outcome), 0U);
  EXPECT_GT(cached(worker.generate(one)), 100U);
  EXPECT_GT(cached(worker.generate(two)), 100U);
  auto three = request(canary, 10);
  three.set_cache_scope("three");
  EXPECT_EQ(cached(worker.generate(three)), 0U);
}

// Memories of every kind: cells, windows, states.
class LanesOfEachMemory : public Lanes, public testing::WithParamInterface<const char*> {};

TEST_P(LanesOfEachMemory, M4_ACrowdSaysWhatEachWouldSayAlone) {
  WorkerProcess worker({sure_model(GetParam()), {"--context", "512", "--sequences", "3"}});
  ASSERT_TRUE(becomes_ready(worker));
  std::vector<v1::GenerateRequest> requests;
  for (int i = 0; i < 9; ++i) {
    auto one = request("The same beginning of all, and then " + std::to_string(i % 5), 40);
    if (i % 3 == 0) one.clear_max_tokens();  // until the window is full: lanes are parked
    requests.push_back(std::move(one));
  }
  const auto outcomes = at_once(worker, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(outcomes[i].done.has_value()) << outcomes[i].status.error_message();
    expect_same_but_for_ties(say_alone(worker, requests[i]), outcomes[i].ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LanesOfEachMemory,
                         testing::Values("llama", "qwen2", "gemma2", "mamba", "jamba"));

}  // namespace
}  // namespace berth::worker
