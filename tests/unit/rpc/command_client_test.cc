#include "supervisor/rpc/command_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/rpc/command_answers.h"
#include "tests/simulation/sim_clock.h"

namespace berth::rpc {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Observer : WorkerObserver {
  void on_progress(const WorkerProgress& /*progress*/) override {}
  void on_own_request() override { ++own_requests; }
  void on_probe(std::string_view what) override { saw = what; }
  void on_ready(const WorkerReady& said) override { ready.push_back(said); }
  void on_load_failed(const WorkerLoadFailed& said) override { failed.push_back(said); }
  void on_heartbeat(const WorkerHeartbeat& /*heartbeat*/) override {}
  void on_disconnected() override { disconnected = true; }
  std::vector<WorkerReady> ready;
  std::vector<WorkerLoadFailed> failed;
  bool disconnected = false;
  int own_requests = 0;
  std::string saw;
};

// A program that answers what the test says.
struct World {
  CommandListener listener{CommandListener::Who::kChild, ""};
  std::deque<CommandListener> next_listeners;  // what the next looks see instead
  bool looked = false;                         // since the last request
  Duration answers_after = 1ms;
  std::function<Result<CommandAnswer>(const CommandRequest&)> answer;
  std::vector<std::string> paths;
  std::vector<std::string> bodies;
  std::vector<SteadyTime> looks;
};

class Peer : public CommandPeer {
 public:
  Peer(Clock& clock, World& world) : clock_(clock), world_(world) {}
  Timer look(std::function<void(CommandListener)> done) override {
    world_.looks.push_back(clock_.now());
    world_.looked = true;
    return clock_.sleep_for(1ms, [this, done = std::move(done)] {
      if (world_.next_listeners.empty()) return done(world_.listener);
      const CommandListener next = world_.next_listeners.front();
      world_.next_listeners.pop_front();
      done(next);
    });
  }
  Timer call(const CommandRequest& request,
             std::function<void(Result<CommandAnswer>)> done) override {
    EXPECT_TRUE(std::exchange(world_.looked, false)) << "each request needs a look of its own";
    world_.paths.push_back(request.path);
    world_.bodies.push_back(request.body);
    if (request.deadline > Duration::zero() && request.deadline < world_.answers_after) {
      return clock_.sleep_for(request.deadline, [done = std::move(done)] {
        done(fail(Reason::kDeadline, "no answer"));
      });
    }
    return clock_.sleep_for(world_.answers_after, [this, request, done = std::move(done)] {
      done(world_.answer(request));
    });
  }
  std::unique_ptr<CommandStream> post(CommandPost /*post*/, CommandStreamSink& /*sink*/) override {
    ADD_FAILURE() << "no request was made";
    return nullptr;
  }

 private:
  Clock& clock_;
  World& world_;
};

constexpr const char* kChoice = R"({"choices":[{"text":"a"}]})";

class CommandClientTest : public ::testing::Test {
 protected:
  void start(ProbeKind kind, const std::string& path = "") {
    client_ = std::make_unique<CommandClient>(clock_, std::make_unique<Peer>(clock_, world_),
                                              CommandProbe{kind, path, "configured"}, 3, observer_);
    EXPECT_TRUE(world_.looks.empty());
  }
  // Answers of paths; others are 404.
  void serve(std::map<std::string, CommandAnswer> answers) {
    world_.answer = [answers = std::move(answers)](const CommandRequest& request) {
      const auto found = answers.find(request.path);
      return found == answers.end() ? CommandAnswer{404, ""} : found->second;
    };
  }

  sim::SimClock clock_{1};
  World world_;
  Observer observer_;
  std::unique_ptr<CommandClient> client_;
};

TEST_F(CommandClientTest, L6_OneTokenProvesReadiness) {
  serve({{"/v1/models", {200, R"({"data":[{"id":"theirs","max_model_len":4096}]})"}},
         {"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(1s);
  ASSERT_THAT(observer_.ready, SizeIs(1));
  EXPECT_EQ(observer_.ready[0].window, 4096U);
  EXPECT_EQ(observer_.ready[0].sequences, 3U);
  EXPECT_TRUE(observer_.ready[0].can_chat);
  EXPECT_THAT(world_.paths, ElementsAre("/v1/models", "/v1/completions"));
  EXPECT_THAT(world_.bodies[1],
              AllOf(HasSubstr(R"("model":"theirs")"), HasSubstr(R"("max_tokens":1)")));
  clock_.advance(1h);
  EXPECT_THAT(world_.paths, SizeIs(2));
}

TEST_F(CommandClientTest, L6_AnAnswerToHealthIsNotReadiness) {
  // It answers everything but never computes.
  world_.answer = [](const CommandRequest&) { return CommandAnswer{200, R"({"status":"ok"})"}; };
  start(ProbeKind::kCompletion);
  clock_.advance(10min);
  EXPECT_THAT(observer_.ready, SizeIs(0));
  EXPECT_THAT(observer_.failed, SizeIs(0));
}

TEST_F(CommandClientTest, L6_AProgramWithChatAloneIsAskedForChat) {
  serve({{"/v1/chat/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(1s);
  EXPECT_THAT(observer_.ready, SizeIs(1));
  EXPECT_THAT(world_.paths, ElementsAre("/v1/models", "/v1/completions", "/v1/chat/completions"));
  EXPECT_THAT(world_.bodies[2],
              AllOf(HasSubstr(R"("model":"configured")"), HasSubstr(R"("messages")")));
}

TEST_F(CommandClientTest, L6_AnEmbeddingProvesReadiness) {
  serve({{"/v1/embeddings", {200, R"({"data":[{"embedding":[0.5]}]})"}}});
  start(ProbeKind::kEmbedding);
  clock_.advance(1s);
  ASSERT_THAT(observer_.ready, SizeIs(1));
  EXPECT_FALSE(observer_.ready[0].can_chat);
}

TEST_F(CommandClientTest, L6_AConfiguredPathMustAnswer200) {
  serve({{"/health", {503, ""}}});
  start(ProbeKind::kPath, "/health");
  clock_.advance(1min);
  EXPECT_THAT(observer_.ready, SizeIs(0));
  serve({{"/health", {200, ""}}, {"/v1/models", {200, R"({"data":[{"id":"a"}]})"}}});
  clock_.advance(6s);
  EXPECT_THAT(observer_.ready, SizeIs(1));
  EXPECT_EQ(world_.paths.back(), "/v1/models") << "requests need the name of its model";
}

TEST_F(CommandClientTest, L6_AsksAgainAtAPaceUntilItIsReady) {
  world_.listener.who = CommandListener::Who::kNobody;
  start(ProbeKind::kCompletion);
  clock_.advance(1min);
  ASSERT_GT(world_.looks.size(), 60U);
  EXPECT_LT(world_.looks.size(), 80U);
  EXPECT_LT(world_.looks[1] - world_.looks[0], 60ms);
  EXPECT_LE(world_.looks[50] - world_.looks[49], 1010ms);
  EXPECT_THAT(world_.paths, SizeIs(0));
  // Loading, broken connections, nonsense: all may pass.
  world_.listener.who = CommandListener::Who::kChild;
  world_.answer = [](const CommandRequest&) { return CommandAnswer{503, "loading"}; };
  clock_.advance(10s);
  world_.answer = [](const CommandRequest&) { return fail(Reason::kWorkerDied, "reset"); };
  clock_.advance(10s);
  world_.answer = [](const CommandRequest&) { return CommandAnswer{200, "{\"data\":[1"}; };
  clock_.advance(10s);
  EXPECT_THAT(observer_.ready, SizeIs(0));
  serve({{"/v1/completions", {200, kChoice}}});
  clock_.advance(6s);
  EXPECT_THAT(observer_.ready, SizeIs(1));
}

TEST_F(CommandClientTest, L7_AFirstRequestMayTakeAsLongAsTheLoadMay) {
  serve({{"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(2ms);
  world_.answers_after = 29min;  // it compiles
  ASSERT_TRUE(clock_.run_until([&] { return world_.paths.size() == 2; }, 20s));
  clock_.advance(28min);
  EXPECT_THAT(observer_.ready, SizeIs(0));
  clock_.advance(2min);
  EXPECT_THAT(observer_.ready, SizeIs(1));
  const std::size_t asked = world_.paths.size();
  EXPECT_LE(asked, 31U) << "one more a minute";
  clock_.advance(1h);
  EXPECT_EQ(world_.paths.size(), asked);
}

TEST_F(CommandClientTest, L7_ARequestThatWasSwallowedIsAskedForAgain) {
  serve({{"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(2ms);
  world_.answers_after = 24h;
  ASSERT_TRUE(clock_.run_until([&] { return world_.paths.size() == 2; }, 20s));
  clock_.advance(59s);
  EXPECT_EQ(observer_.saw, "it accepted the connection and did not answer");
  EXPECT_THAT(world_.paths, SizeIs(2));
  world_.answers_after = 1ms;
  clock_.advance(2s);
  EXPECT_THAT(world_.paths, ElementsAre("/v1/models", "/v1/completions", "/v1/completions"));
  EXPECT_THAT(observer_.ready, SizeIs(1));
}

TEST_F(CommandClientTest, L7_OneThatTakesItsTimeIsReadyAlsoWhereTheFirstRequestWasLost) {
  serve({{"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(2ms);
  world_.answers_after = 24h;
  ASSERT_TRUE(clock_.run_until([&] { return world_.paths.size() == 2; }, 20s));
  world_.answers_after = 15min;  // it compiles
  EXPECT_TRUE(clock_.run_until([&] { return !observer_.ready.empty(); }, 1h));
}

TEST_F(CommandClientTest, L7_OneThatAnswersLateAfterAllProvesIt) {
  serve({{"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(2ms);
  world_.answers_after = 90s;
  ASSERT_TRUE(clock_.run_until([&] { return world_.paths.size() == 2; }, 20s));
  world_.answer = [](const CommandRequest&) { return CommandAnswer{503, "busy"}; };
  clock_.advance(80s);
  serve({{"/v1/completions", {200, kChoice}}});
  clock_.advance(11s);
  EXPECT_THAT(observer_.ready, SizeIs(1)) << "by the first; the second has 50 s left";
}

TEST_F(CommandClientTest, L8_WhatTheLastQuestionSawIsTold) {
  world_.listener.who = CommandListener::Who::kNobody;
  start(ProbeKind::kCompletion);
  clock_.advance(10s);
  EXPECT_EQ(observer_.saw, "nobody listened at its address");
  world_.listener.who = CommandListener::Who::kChild;
  world_.answer = [](const CommandRequest&) { return CommandAnswer{302, ""}; };
  clock_.advance(10s);
  EXPECT_EQ(observer_.saw, "it answered 302");
  world_.answer = [](const CommandRequest&) { return fail(Reason::kWorkerDied, "reset"); };
  clock_.advance(10s);
  EXPECT_EQ(observer_.saw, "its connection broke without an answer");
  world_.answer = [](const CommandRequest&) { return CommandAnswer{200, "{}"}; };
  clock_.advance(10s);
  EXPECT_EQ(observer_.saw, "it answered 200 without what it was asked for");
}

TEST_F(CommandClientTest, L8_EachRequestOfOurOwnIsTold) {
  serve({{"/v1/completions", {200, kChoice}}});
  start(ProbeKind::kCompletion);
  clock_.advance(1s);
  EXPECT_EQ(observer_.own_requests, 4) << "two that began and ended";
}

TEST_F(CommandClientTest, L8_AProgramThatIsNotReadyIsAskedLessAndLess) {
  world_.answer = [](const CommandRequest&) { return CommandAnswer{503, "loading"}; };
  start(ProbeKind::kCompletion);
  clock_.advance(10s);
  const std::size_t first = world_.paths.size();
  EXPECT_GE(first, 20U);
  clock_.advance(10min);
  world_.paths.clear();
  clock_.advance(60s);
  EXPECT_LE(world_.paths.size(), 26U);
  EXPECT_GE(world_.paths.size(), 22U);
}

CommandListener stranger() {
  return {CommandListener::Who::kOther, "port 1234 is held by pid 12 (nginx)"};
}

TEST_F(CommandClientTest, L27_OneLookThatSeesAStrangerIsNoVerdict) {
  serve({{"/v1/completions", {200, kChoice}}});
  const CommandListener child{CommandListener::Who::kChild, ""};
  const CommandListener nobody{CommandListener::Who::kNobody, ""};
  world_.next_listeners = {stranger(), stranger(), nobody, stranger(), stranger(),
                           child,      stranger(), child,  child};
  start(ProbeKind::kCompletion);
  clock_.advance(10s);
  EXPECT_THAT(observer_.failed, SizeIs(0));
  EXPECT_THAT(observer_.ready, SizeIs(1));
}

TEST_F(CommandClientTest, L27_AnAnswerThatAStrangerMayHaveGivenProvesNothing) {
  serve({{"/v1/completions", {200, kChoice}}});
  const CommandListener child{CommandListener::Who::kChild, ""};
  world_.next_listeners = {child, child, stranger(), stranger(), stranger()};
  start(ProbeKind::kCompletion);
  clock_.advance(1min);
  EXPECT_THAT(world_.paths, ElementsAre("/v1/models", "/v1/completions"));
  EXPECT_THAT(observer_.ready, SizeIs(0));
  ASSERT_THAT(observer_.failed, SizeIs(1));
  EXPECT_EQ(observer_.failed[0].failure_class, "launch");
}

TEST_F(CommandClientTest, L27_TheProofIsAskedForAgainWhenNobodyListensAfterIt) {
  serve({{"/v1/completions", {200, kChoice}}});
  const CommandListener child{CommandListener::Who::kChild, ""};
  world_.next_listeners = {child, child, {CommandListener::Who::kNobody, ""}};
  start(ProbeKind::kCompletion);
  clock_.advance(1min);
  EXPECT_THAT(world_.paths, ElementsAre("/v1/models", "/v1/completions", "/v1/completions"));
  EXPECT_THAT(observer_.ready, SizeIs(1));
}

TEST_F(CommandClientTest, L27_AStrangerAtTheAddressFailsTheLoadUnasked) {
  world_.listener = {CommandListener::Who::kOther, "port 1234 is held by pid 12 (nginx)"};
  start(ProbeKind::kCompletion);
  clock_.advance(1h);
  ASSERT_THAT(observer_.failed, SizeIs(1));
  EXPECT_EQ(observer_.failed[0].failure_class, "launch");
  EXPECT_EQ(observer_.failed[0].reason, "port 1234 is held by pid 12 (nginx)");
  EXPECT_THAT(world_.paths, SizeIs(0));
}

TEST_F(CommandClientTest, AsksNoMoreWhenItIsCancelledOrDestroyed) {
  world_.answer = [](const CommandRequest&) { return CommandAnswer{503, ""}; };
  start(ProbeKind::kCompletion);
  clock_.advance(5s);
  client_->cancel_load();
  const std::size_t asked = world_.paths.size();
  clock_.advance(1min);
  EXPECT_EQ(world_.paths.size(), asked);
  world_.looks.clear();
  start(ProbeKind::kCompletion);
  clock_.advance(25ms);
  client_.reset();
  clock_.advance(1min);
  EXPECT_THAT(observer_.ready, SizeIs(0));
}

TEST(CommandAnswers, L6_WhatCannotBeReadProvesNothing) {
  for (const char* const body : {"", "null", "[]", "{", R"({"choices":[]})", R"({"choices":{}})",
                                 R"({"choices":["a"]})", R"({"error":{"message":"x"}})"}) {
    EXPECT_FALSE(proves_completion(body)) << body;
  }
  for (const char* const body :
       {"", "{}", R"({"data":[]})", R"({"data":[{}]})", R"({"data":[{"embedding":[]}]})",
        R"({"data":[{"embedding":["a"]}]})", R"({"data":[{"embedding":""}]})"}) {
    EXPECT_FALSE(proves_embedding(body)) << body;
  }
  EXPECT_TRUE(proves_embedding(R"({"data":[{"embedding":"AAAA"}]})"));
  for (const char* const body : {"", "{}", R"({"data":[]})", R"({"data":[{"id":1}]})"}) {
    EXPECT_FALSE(read_models(body)) << body;
  }
  EXPECT_EQ(read_models(R"({"data":[{"id":"a","max_model_len":-1}]})")->window, 0U);
  EXPECT_FALSE(read_models(R"({"data":[{"id":")" + std::string(513, 'a') + "\"}]}"));
}

}  // namespace
}  // namespace berth::rpc
