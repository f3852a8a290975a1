// Answers that wait, come as streams, or whose clients leave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class StreamRoutesTest : public RoutesTest {};

TEST_F(StreamRoutesTest, AStreamEndsInDone) {
  const Asked asked = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(asked));
  ASSERT_TRUE(asked.reply->head);
  EXPECT_TRUE(asked.reply->body.starts_with("data: {\"id\":\"chatcmpl-r-1\""))
      << "a load of less than a second is not shown";
  EXPECT_TRUE(asked.reply->has(R"("content":" world")"));
  EXPECT_TRUE(asked.reply->body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(asked.reply->ended);
}

TEST_F(StreamRoutesTest, T30_T37_AStreamShowsALongLoad) {
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

TEST_F(StreamRoutesTest, T37_AReplyThatIsNoStreamWaitsForTheLoad) {
  sim::WorkerScript slow;
  slow.load = 5min;
  script(slow);
  const Asked asked = chat();
  world_.clock.advance(4min);
  EXPECT_FALSE(asked.reply->sent || asked.reply->head);
  ASSERT_TRUE(run(asked, 2min));
  EXPECT_EQ(asked.status(), 200);
}

TEST_F(StreamRoutesTest, T29_AHangUpLeavesTheLoadAndTheNextTryMeetsIt) {
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

TEST_F(StreamRoutesTest, T31_T35_AClientThatLeavesEndsItsWork) {
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

TEST_F(StreamRoutesTest, AClientThatIsGoneBeforeItBeganStartsNothing) {
  const Asked asked = chat();
  asked.handler->on_gone();
  world_.clock.advance(1min);
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(StreamRoutesTest, AClientThatDoesNotReadPausesTheAnswer) {
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

TEST_F(StreamRoutesTest, AFailedLoadHasItsStatusOrIsAnErrorEvent) {
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

TEST_F(StreamRoutesTest, AWorkerThatDiesEndsTheStreamInAnErrorEvent) {
  sim::WorkerScript dies;
  dies.fate = sim::Fate::kDiesBusy;
  dies.fate_after = 15ms;
  script(dies);
  const Asked asked = chat(R"(,"stream":true)");
  ASSERT_TRUE(run(asked));
  EXPECT_TRUE(asked.reply->has("\"code\":\"worker_died\""));
  EXPECT_FALSE(asked.reply->has("[DONE]"));
}

TEST_F(StreamRoutesTest, T42_AFullQueueIs429AndAPlaceInItIsShown) {
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
TEST_F(StreamRoutesTest, L27_ARequestForAProgramIsPassedOnAsItCame) {
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

TEST_F(StreamRoutesTest, L27_AProgramsStreamShowsItsLoadAndItsAnswer) {
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

TEST_F(StreamRoutesTest, T31_AClientOfAProgramThatLeavesEndsItsWork) {
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

}  // namespace
}  // namespace berth::gateway::openai
