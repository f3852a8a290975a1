#include "supervisor/gateway/openai/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/residency/residency.h"
#include "tests/unit/gateway/gateway_world.h"
#include "tests/unit/gateway/openai/fake_reply.h"
#include "tests/unit/gateway/openai/read.h"

namespace berth::gateway::openai {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// One request and its answer.
struct Asked {
  std::shared_ptr<FakeReply> reply = std::make_shared<FakeReply>();
  std::shared_ptr<Handler> handler;

  [[nodiscard]] json::value body() const {
    return reply->sent ? json::parse(reply->sent->body) : json::value();
  }
  [[nodiscard]] int status() const { return reply->sent ? reply->sent->status : 0; }
};

std::vector<std::shared_ptr<const catalog::Model>> models() {
  auto demo = sim::make_model("demo");
  demo->aliases = {"gpt-4o-mini"};
  demo->served_context = 4096;
  demo->can_chat = true;
  demo->can_embed = true;
  auto broken = sim::make_model("broken");
  broken->problem = "It is cut off.";
  auto program = sim::make_model("program");
  program->settings.kind = catalog::Kind::kCommand;
  return {demo, broken, program, sim::make_model("org/name")};
}

class RoutesTest : public testing::Test, protected GatewayWorld {
 protected:
  RoutesTest() : GatewayWorld(models()) {}

  Asked start(const std::string& method, const std::string& pattern, HttpRequest request) {
    Asked asked;
    request.id = "r-1";
    for (const Route& route : routes(services_)) {
      if (route.method != method || route.pattern != pattern) continue;
      asked.handler = route.start(std::move(request), asked.reply);
      return asked;
    }
    ADD_FAILURE() << "no route " << method << " " << pattern;
    return asked;
  }
  Asked post(const std::string& path, std::string body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = std::move(body);
    return start("POST", path, std::move(request));
  }
  Asked chat(std::string_view members = "") {
    return post("/v1/chat/completions",
                R"({"model":"demo","messages":[{"role":"user","content":"Hi"}])" +
                    std::string(members) + "}");
  }
  Asked get(const std::string& pattern, const std::string& argument = "") {
    HttpRequest request;
    request.method = "GET";
    if (!argument.empty()) request.arguments = {argument};
    Asked asked = start("GET", pattern, std::move(request));
    world_.clock.settle();
    return asked;
  }
  bool run(const Asked& asked, Duration at_most = 1min) {
    return world_.clock.run_until([&] { return asked.reply->over(); }, at_most);
  }
  void script(const sim::WorkerScript& script) {
    world_.workers.set_script([script](const std::string&) { return script; });
  }
};

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

TEST_F(RoutesTest, AStreamEndsInDone) {
  const Asked asked = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(asked));
  ASSERT_TRUE(asked.reply->head);
  EXPECT_TRUE(asked.reply->body.starts_with("data: {\"id\":\"chatcmpl-r-1\""))
      << "a load of less than a second is not shown";
  EXPECT_TRUE(asked.reply->has(R"("content":" world")"));
  EXPECT_TRUE(asked.reply->body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(asked.reply->ended);
}

TEST_F(RoutesTest, T30_T37_AStreamShowsALongLoad) {
  sim::WorkerScript slow;
  slow.load = 20s;
  script(slow);
  const Asked asked = chat(R"(,"stream":true)");
  world_.clock.advance(900ms);
  EXPECT_FALSE(asked.reply->head);
  world_.clock.advance(100ms);
  ASSERT_TRUE(asked.reply->head);
  EXPECT_EQ(asked.reply->head->status, 200);
  EXPECT_TRUE(asked.reply->body.starts_with(": loading ")) << asked.reply->body;
  ASSERT_TRUE(run(asked));
  EXPECT_TRUE(asked.reply->body.ends_with("data: [DONE]\n\n"));
}

TEST_F(RoutesTest, T37_AReplyThatIsNoStreamWaitsForTheLoad) {
  sim::WorkerScript slow;
  slow.load = 5min;
  script(slow);
  const Asked asked = chat();
  world_.clock.advance(4min);
  EXPECT_FALSE(asked.reply->sent || asked.reply->head);
  ASSERT_TRUE(run(asked, 2min));
  EXPECT_EQ(asked.status(), 200);
}

TEST_F(RoutesTest, T29_AHangUpLeavesTheLoadAndTheNextTryMeetsIt) {
  sim::WorkerScript slow;
  slow.load = 20s;
  script(slow);
  const Asked first = chat();
  world_.clock.advance(15s);
  first.handler->on_gone();
  const Asked second = chat();
  ASSERT_TRUE(run(second, 10s)) << "the load began again";
  EXPECT_EQ(second.status(), 200);
  EXPECT_FALSE(first.reply->sent);
  EXPECT_EQ(world_.events.count("load.started"), 1U);
}

TEST_F(RoutesTest, T31_T35_AClientThatLeavesEndsItsWork) {
  sim::WorkerScript endless;
  endless.tokens.assign(100'000, "x");
  script(endless);
  const Asked asked = chat(R"(,"stream":true)");
  ASSERT_TRUE(world_.clock.run_until([&] { return asked.reply->has("\"x\""); }, 1min));
  const std::size_t before = asked.reply->pieces.size();
  asked.handler->on_gone();
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  EXPECT_EQ(world_.workers.newest("demo")->generations(), 0U);
  world_.clock.advance(1min);
  EXPECT_EQ(asked.reply->pieces.size(), before);
}

TEST_F(RoutesTest, AClientThatIsGoneBeforeItBeganStartsNothing) {
  const Asked asked = chat();
  asked.handler->on_gone();
  world_.clock.advance(1min);
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(RoutesTest, AClientThatDoesNotReadPausesTheAnswer) {
  sim::WorkerScript long_answer;
  long_answer.tokens.assign(50, "x");
  script(long_answer);
  const Asked asked = chat(R"(,"stream":true)");
  asked.reply->room = false;
  world_.clock.advance(1min);
  ASSERT_EQ(asked.reply->pieces.size(), 1U);
  asked.reply->room = true;
  asked.handler->on_room();
  ASSERT_TRUE(run(asked));
  EXPECT_TRUE(asked.reply->body.ends_with("data: [DONE]\n\n"));
}

TEST_F(RoutesTest, AFailedLoadHasItsStatusOrIsAnErrorEvent) {
  sim::WorkerScript fails;
  fails.fate = sim::Fate::kSaysLoadFailed;
  fails.fate_after = 3s;
  fails.load = 3s;
  script(fails);
  const Asked streamed = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(streamed));
  ASSERT_TRUE(streamed.reply->head) << "it had waited for more than a second";
  EXPECT_TRUE(streamed.reply->has("data: {\"error\":{"));
  EXPECT_TRUE(streamed.reply->has("\"code\":\"load_failed\""));
  EXPECT_FALSE(streamed.reply->has("[DONE]"));
  // It stands: the next ones are refused at once.
  const Asked again = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(again));
  EXPECT_EQ(again.status(), 503);
  const Asked whole = chat();
  ASSERT_TRUE(run(whole));
  EXPECT_EQ(whole.status(), 503);
  EXPECT_EQ(whole.body().at("error").at("code"), "load_failed");
}

TEST_F(RoutesTest, AWorkerThatDiesEndsTheStreamInAnErrorEvent) {
  sim::WorkerScript dies;
  dies.fate = sim::Fate::kDiesBusy;
  dies.fate_after = 15ms;
  script(dies);
  const Asked asked = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(asked));
  EXPECT_TRUE(asked.reply->has("\"code\":\"worker_died\""));
  EXPECT_FALSE(asked.reply->has("[DONE]"));
}

TEST_F(RoutesTest, T42_AFullQueueIs429AndAPlaceInItIsShown) {
  sim::WorkerScript busy;
  busy.sequences = 1;
  busy.tokens.assign(100'000, "x");
  script(busy);
  std::vector<Asked> all;
  all.push_back(chat(R"(,"stream":true)"));
  ASSERT_TRUE(world_.clock.run_until([&] { return all[0].reply->has("\"x\""); }, 1min));
  for (int i = 0; i < 256; ++i) all.push_back(chat(R"(,"stream":true)"));
  world_.clock.advance(2s);
  EXPECT_TRUE(all[3].reply->has(": queued, position 3")) << all[3].reply->body;
  const Asked refused = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(refused));
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.body().at("error").at("code"), "queue_full");
}

// What is wrong for a worker may be right for a program: it reads its requests itself.
TEST_F(RoutesTest, L27_ARequestForAProgramIsPassedOnAsItCame) {
  sim::WorkerScript program;
  program.head = {200, "application/json", ""};
  program.tokens = {R"({"model":"its-name",)", R"("choices":[]})"};
  script(program);
  const Asked asked =
      post("/v1/chat/completions", R"({"model":"program","messages":[{"role":"user","content":)"
                                   R"([{"type":"image_url"}]}],"n":7,"temperature":1e2})");
  ASSERT_TRUE(run(asked));
  EXPECT_EQ(asked.status(), 200);
  EXPECT_EQ(asked.body().at("model"), "program");
  const rpc::ForwardRequest& sent = world_.workers.newest("program")->forwarded();
  EXPECT_EQ(sent.path, "/v1/chat/completions");
  EXPECT_NE(sent.body.at(1).find(R"("n":7,"temperature":1e2})"), std::string::npos);
}

TEST_F(RoutesTest, L27_AProgramsStreamShowsItsLoadAndItsAnswer) {
  sim::WorkerScript program;
  program.load = 20s;
  program.head = {200, "text/event-stream", ""};
  program.tokens = {"data: {\"model\":\"its-name\"}\n\n", "data: [DO", "NE]\n\n"};
  script(program);
  const Asked asked = post("/v1/completions", R"({"model":"program","prompt":"Hi","stream":true})");
  ASSERT_TRUE(run(asked));
  EXPECT_TRUE(asked.reply->body.starts_with(": loading ")) << asked.reply->body;
  EXPECT_TRUE(asked.reply->body.ends_with("data: {\"model\":\"program\"}\n\ndata: [DONE]\n\n"))
      << asked.reply->body;
  EXPECT_TRUE(asked.reply->ended);
}

TEST_F(RoutesTest, T31_AClientOfAProgramThatLeavesEndsItsWork) {
  sim::WorkerScript program;
  program.head = {200, "text/event-stream", ""};
  program.tokens.assign(10'000, "data: {}\n\n");
  script(program);
  const Asked asked = post("/v1/completions", R"({"model":"program","prompt":"Hi","stream":true})");
  ASSERT_TRUE(world_.clock.run_until([&] { return asked.reply->has("data: "); }, 1min));
  asked.handler->on_gone();
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  EXPECT_EQ(world_.workers.newest("program")->generations(), 0U);
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
