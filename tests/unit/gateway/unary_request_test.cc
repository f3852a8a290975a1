#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/gateway/embedding.h"
#include "supervisor/gateway/tokenizing.h"
#include "tests/unit/gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// A client that keeps what it is told.
template <typename Answer>
class Client : public UnaryResponder<Answer> {
 public:
  void on_waiting(const residency::ClaimProgress& /*progress*/) override { ++waits; }
  Status on_answer(Answer got, const std::string& by) override {
    EXPECT_FALSE(over());
    answer = std::move(got);
    model = by;
    return refuses;
  }
  void on_failed(const Error& error) override {
    EXPECT_FALSE(over());
    failed = error;
  }
  [[nodiscard]] bool over() const { return answer || failed; }

  int waits = 0;
  Status refuses;
  std::optional<Answer> answer;
  std::string model;
  std::optional<Error> failed;
};

std::vector<std::shared_ptr<const catalog::Model>> models() {
  auto demo = sim::make_model("demo");
  demo->aliases = {"gpt"};
  demo->can_embed = true;
  auto chat = sim::make_model("chat");
  chat->can_embed = false;
  return {demo, chat};
}

class UnaryRequestTest : public testing::Test, protected GatewayWorld {
 protected:
  UnaryRequestTest() : GatewayWorld(models()) {}

  std::shared_ptr<Embedding> embed(std::shared_ptr<Client<core::Embeddings>> client,
                                   const std::string& model = "gpt", Duration timeout = 10min) {
    core::EmbedRequest request;
    request.request_id = "r-1";
    request.model = model;
    request.inputs = {core::PromptInput{"ab"}, core::TokenInput{{7}}};
    return Embedding::start(services_, {}, std::move(request), world_.clock.now() + timeout,
                            std::move(client));
  }
  template <typename Answer>
  bool run(const Client<Answer>& client, Duration at_most = 1min) {
    return world_.clock.run_until([&] { return client.over(); }, at_most);
  }
};

TEST_F(UnaryRequestTest, AColdModelIsLoadedAndEmbeds) {
  const auto client = std::make_shared<Client<core::Embeddings>>();
  embed(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->answer);
  EXPECT_EQ(client->model, "demo") << "an alias means its model";
  EXPECT_GT(client->waits, 0);
  ASSERT_EQ(client->answer->embeddings.size(), 2U);
  EXPECT_EQ(client->answer->embeddings[0].values, (std::vector<float>{'a', 'b'}));
  EXPECT_EQ(client->answer->prompt_tokens, 3U);
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.admitted"), 1U);
  EXPECT_EQ(world_.events.count("request.finished"), 1U);
}

TEST_F(UnaryRequestTest, AnAnswerThatIsNotGivenIsRecordedAsFailed) {
  const auto client = std::make_shared<Client<core::Embeddings>>();
  client->refuses = fail(Reason::kInvalidArgument, "The answer would be too long.");
  embed(client);
  ASSERT_TRUE(run(*client));
  world_.clock.settle();
  EXPECT_FALSE(client->failed) << "told once";
  EXPECT_EQ(world_.events.count("request.finished"), 0U);
  EXPECT_EQ(world_.events.count("request.failed"), 1U);
}

TEST_F(UnaryRequestTest, TheVocabularyIsAsked) {
  core::TokenizeRequest request;
  request.model = "demo";
  request.input = core::TextInput{"Hi"};
  const auto tokens = std::make_shared<Client<core::Tokens>>();
  Tokenizing::start(services_, {}, request, world_.clock.now() + 1min, tokens);
  ASSERT_TRUE(run(*tokens));
  ASSERT_TRUE(tokens->answer);
  EXPECT_EQ(tokens->answer->ids, (std::vector<std::int32_t>{'H', 'i'}));

  const auto count = std::make_shared<Client<core::TokenCount>>();
  TokenCounting::start(services_, {}, request, world_.clock.now() + 1min, count);
  ASSERT_TRUE(run(*count));
  ASSERT_TRUE(count->answer);
  EXPECT_EQ(count->answer->tokens, 2U);
  EXPECT_EQ(count->answer->window, 4096U);

  core::DetokenizeRequest back;
  back.model = "demo";
  back.ids = {'H', 'i'};
  const auto text = std::make_shared<Client<core::DetokenizedText>>();
  Detokenizing::start(services_, {}, back, world_.clock.now() + 1min, text);
  ASSERT_TRUE(run(*text));
  ASSERT_TRUE(text->answer);
  EXPECT_EQ(text->answer->text, "Hi");
}

TEST_F(UnaryRequestTest, AModelWithoutEmbeddingsIsNotLoadedForThem) {
  const auto client = std::make_shared<Client<core::Embeddings>>();
  embed(client, "chat");
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kInvalidArgument);
  EXPECT_EQ(client->failed->extras->param, "model");
  EXPECT_NE(client->failed->message.find("embeddings = true"), std::string::npos);
  world_.clock.settle();
  EXPECT_TRUE(world_.workers.all().empty());
  EXPECT_EQ(world_.events.count("request.refused"), 1U);
}

TEST_F(UnaryRequestTest, L9_AWorkerThatDiesSaysWhy) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.fate = sim::Fate::kDiesBusy;
    script.fate_after = 15ms;
    script.exit = core::Signalled{SIGKILL};
    return script;
  });
  const auto client = std::make_shared<Client<core::Embeddings>>();
  embed(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kWorkerDied);
  EXPECT_NE(client->failed->message.find("SIGKILL"), std::string::npos);
  EXPECT_EQ(world_.events.count("request.failed"), 1U);
}

TEST_F(UnaryRequestTest, T31_CancelEndsTheWorkAndFreesThePlace) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.sequences = 1;
    script.token_every = 10s;
    return script;
  });
  const auto client = std::make_shared<Client<core::Embeddings>>();
  const auto request = embed(client);
  ASSERT_TRUE(world_.clock.run_until(
      [&] {
        const auto worker = world_.workers.newest("demo");
        return worker && worker->generations() == 1;
      },
      1min));
  request->cancel();
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  EXPECT_EQ(world_.workers.newest("demo")->generations(), 0U);
  const auto next = std::make_shared<Client<core::Embeddings>>();
  embed(next);
  EXPECT_TRUE(run(*next, 5min));
  EXPECT_FALSE(client->over());
}

TEST_F(UnaryRequestTest, M19_ADeadlineEndsTheWorkAndTheWait) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.sequences = 1;
    script.token_every = 1min;
    return script;
  });
  const auto runs = std::make_shared<Client<core::Embeddings>>();
  embed(runs, "demo", 30s);
  const auto waits = std::make_shared<Client<core::Embeddings>>();
  embed(waits, "demo", 20s);
  ASSERT_TRUE(run(*waits));
  ASSERT_TRUE(run(*runs));
  ASSERT_TRUE(runs->failed && waits->failed);
  EXPECT_EQ(runs->failed->reason, Reason::kDeadline);
  EXPECT_EQ(waits->failed->reason, Reason::kDeadline);
}

TEST_F(UnaryRequestTest, AnAbortTellsTheClientWhyInEveryState) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.sequences = 1;
    script.token_every = 1min;
    return script;
  });
  const auto runs = std::make_shared<Client<core::Embeddings>>();
  const auto running = embed(runs);
  ASSERT_TRUE(world_.clock.run_until(
      [&] {
        const auto worker = world_.workers.newest("demo");
        return worker && worker->generations() == 1;
      },
      1min));
  const auto waits = std::make_shared<Client<core::Embeddings>>();
  const auto waiting = embed(waits);
  world_.clock.settle();
  const Error why(Reason::kConflict, "An admin ended it.");
  waiting->abort(why);
  running->abort(why);
  ASSERT_TRUE(run(*runs, 1s));
  ASSERT_TRUE(run(*waits, 1s));
  EXPECT_EQ(runs->failed->message, "An admin ended it.");
  EXPECT_EQ(waits->failed->message, "An admin ended it.");
  running->abort(why);
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.failed"), 1U);
  EXPECT_EQ(world_.events.count("request.refused"), 1U);
}

TEST_F(UnaryRequestTest, L29_AShutdownEndsWhatRuns) {
  world_.workers.set_script([](const std::string&) {
    sim::WorkerScript script;
    script.token_every = 1h;
    return script;
  });
  const auto client = std::make_shared<Client<core::Embeddings>>();
  embed(client, "demo", 24h);
  ASSERT_TRUE(world_.clock.run_until(
      [&] {
        const auto worker = world_.workers.newest("demo");
        return worker && worker->generations() == 1;
      },
      1min));
  bool down = false;
  residency_.shutdown(5s, [&] { down = true; });
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kShuttingDown);
  EXPECT_TRUE(world_.clock.run_until([&] { return down; }, 1min));
}

TEST_F(UnaryRequestTest, NothingIsLeftOfARequest) {
  const auto client = std::make_shared<Client<core::Embeddings>>();
  const std::weak_ptr<Embedding> request = embed(client);
  ASSERT_TRUE(run(*client));
  world_.clock.settle();
  EXPECT_TRUE(request.expired());
  EXPECT_EQ(client.use_count(), 1);
}

}  // namespace
}  // namespace berth::gateway
