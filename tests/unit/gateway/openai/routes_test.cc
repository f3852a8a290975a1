// The routes and their answers at once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/residency/residency.h"
#include "tests/unit/gateway/openai/read.h"
#include "tests/unit/gateway/openai/routes_world.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

TEST_F(RoutesTest, AChatIsAnsweredAtOnce) {
  const Asked asked = chat();
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 200);
  EXPECT_EQ(asked.reply->sent->content_type, "application/json");
  EXPECT_EQ(asked.body().at("id"), "chatcmpl-r-1");
  EXPECT_EQ(asked.body().at("model"), "demo");
  EXPECT_EQ(asked.body().at("choices").at(0).at("message").at("content"), "Hello, world.");
}

TEST_F(RoutesTest, ACompletionIsAnsweredAtOnce) {
  const Asked asked = post("/v1/completions", R"({"model":"gpt-4o-mini","prompt":"Hi"})");
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.body().at("model"), "demo") << "an alias means its model";
  EXPECT_EQ(asked.body().at("choices").at(0).at("text"), "Hello, world.");
}

TEST_F(RoutesTest, EmbeddingsAreAnswered) {
  const Asked asked = post("/v1/embeddings", R"({"model":"gpt-4o-mini","input":["a","b"]})");
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 200);
  EXPECT_EQ(asked.body().at("model"), "demo");
  EXPECT_EQ(asked.body().at("data").as_array().size(), 2U);
  const Asked wrong = post("/v1/embeddings", R"({"model":"org/name","input":"a"})");
  ASSERT_TRUE(run(wrong));
  EXPECT_EQ(wrong.status(), 400);
  EXPECT_EQ(wrong.body().at("error").at("param"), "model") << "it gives none";
}

// Bytes that are in use; 0 under a sanitizer.
std::size_t bytes_in_use() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST_F(RoutesTest, ABodyIsKeptOnceWhoeverAnswersIt) {
  const std::string text(std::size_t{8} << 20U, 'x');
  for (const char* const model : {"demo", "program"}) {
    const std::size_t before = bytes_in_use();
    const Asked asked = post(
        "/v1/completions", R"({"model":")" + std::string(model) + R"(","prompt":")" + text + "\"}");
    EXPECT_FALSE(asked.reply->sent);
    EXPECT_LT(bytes_in_use(), before + text.size() * 3 / 2) << model;
    asked.handler->on_gone();
    world_.clock.settle();
  }
}

TEST_F(RoutesTest, AnEmbeddingWhoseClientLeftIsCancelled) {
  const Asked asked = post("/v1/embeddings", R"({"model":"demo","input":"a"})");
  world_.clock.settle();
  asked.handler->on_gone();
  world_.clock.advance(1min);
  EXPECT_FALSE(asked.reply->sent);
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
}

TEST_F(RoutesTest, AWholeAnswerIsBounded) {
  sim::WorkerScript huge;
  huge.tokens.assign(70, std::string(std::size_t{1} << 20U, 'x'));
  script(huge);
  const Asked asked = chat();
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 400);
  EXPECT_EQ(asked.body().at("error").at("param"), "stream");
}

TEST_F(RoutesTest, WrongRequestsAreRefusedAndSayWhere) {
  const Asked json_error = post("/v1/chat/completions", "{\"model\":");
  EXPECT_EQ(json_error.status(), 400);
  EXPECT_EQ(FakeReply::header(*json_error.reply->sent, "x-should-retry"),
            std::vector<std::string>{"false"});
  const Asked wrong = chat(R"(,"temperature":-1)");
  world_.clock.settle();
  EXPECT_EQ(wrong.status(), 400);
  EXPECT_EQ(wrong.body().at("error").at("param"), "temperature");
  EXPECT_EQ(wrong.body().at("error").at("request_id"), "r-1");
  EXPECT_EQ(world_.events.count("request.refused"), 2U);
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(RoutesTest, NoEventHasAWordOfTheRequest) {
  const Asked early = post("/v1/chat/completions", R"({"model":"demo","messages":"my secret"})");
  world_.clock.settle();
  EXPECT_THAT(early.reply->sent->body, testing::HasSubstr("my secret")) << "the client may be told";
  ASSERT_EQ(world_.events.count("request.refused"), 1U);
  EXPECT_EQ(sim::SimEvents::field(*world_.events.last("request.refused"), "message"),
            "The request or a setting has a wrong value. The field is messages.");
}

TEST_F(RoutesTest, ACancelTellsTheClientNotToAskAgainByItself) {
  sim::WorkerScript endless;
  endless.load = 20s;
  script(endless);
  const Asked asked = chat("");
  world_.clock.settle();
  EXPECT_EQ(requests_.cancel("r-1", std::nullopt), 1U);
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 409);
  EXPECT_EQ(FakeReply::header(*asked.reply->sent, "x-should-retry"),
            std::vector<std::string>{"false"});
}

TEST_F(RoutesTest, AnUnknownModelIs404) {
  const Asked asked = post("/v1/completions", R"({"model":"nothing","prompt":"Hi"})");
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 404);
  EXPECT_EQ(asked.body().at("error").at("code"), "unknown_model");
}

TEST_F(RoutesTest, T87_ModelsAreListedAndNoneIsWoken) {
  const json::value list = get("/v1/models").body();
  EXPECT_EQ(list.at("object"), "list");
  const json::array& data = list.at("data").as_array();
  ASSERT_EQ(data.size(), 3U) << "broken ones are not listed";
  EXPECT_EQ(data[0].at("id"), "demo");
  EXPECT_EQ(data[0].at("object"), "model");
  EXPECT_EQ(data[0].at("owned_by"), "berth");
  EXPECT_TRUE(data[0].at("created").is_int64());
  EXPECT_EQ(data[0].at("aliases").at(0), "gpt-4o-mini");
  EXPECT_EQ(data[0].at("state"), "absent");
  EXPECT_EQ(data[0].at("max_model_len"), 4096);
  EXPECT_EQ(data[0].at("capabilities").at(0), "chat");
  EXPECT_EQ(get("/v1/models/{...}", "org/name").body().at("id"), "org/name");
  EXPECT_EQ(get("/v1/models/{...}", "gpt-4o-mini").body().at("id"), "demo");
  EXPECT_EQ(get("/v1/models/{...}", "broken").body().at("state"), "broken");
  EXPECT_EQ(get("/v1/models/{...}", "nothing").status(), 404);
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(RoutesTest, M6_TheWindowIsTheOneThatIsServed) {
  const auto window = [this] {
    const json::value shown = get("/v1/models/{...}", "demo").body();
    EXPECT_EQ(shown.at("meta").at("n_ctx"), shown.at("max_model_len"));
    return shown.at("max_model_len").as_int64();
  };
  sim::WorkerScript script;
  script.window = 1024;
  world_.workers.set_script([script](const std::string&) { return script; });
  EXPECT_EQ(window(), 4096);
  ASSERT_TRUE(run(chat()));
  EXPECT_EQ(window(), 1024);
}

TEST_F(RoutesTest, NothingIsLeftOfAnAnswer) {
  Asked asked = chat(R"(,"stream":true)");
  const std::weak_ptr<Handler> handler = asked.handler;
  ASSERT_TRUE(run(asked));
  asked.handler.reset();
  world_.clock.settle();
  EXPECT_TRUE(handler.expired());
  EXPECT_EQ(asked.reply.use_count(), 1);
}

}  // namespace
}  // namespace berth::gateway::openai
