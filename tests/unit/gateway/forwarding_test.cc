#include "supervisor/gateway/forwarding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/gateway/gateway_world.h"

namespace berth::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A client that keeps what it is told.
class Client : public ForwardResponder {
 public:
  void on_accepted(const std::string& model) override { accepted = model; }
  void on_waiting(const residency::ClaimProgress& /*progress*/) override { waited = true; }
  void on_head(ForwardedHead got) override {
    EXPECT_FALSE(head || over());
    head = std::move(got);
  }
  bool on_piece(std::string piece) override {
    EXPECT_TRUE(head && !over() && !piece.empty());
    body += piece;
    ++pieces;
    return pieces < room;
  }
  void on_finished() override {
    EXPECT_FALSE(over());
    finished = true;
  }
  void on_failed(const Error& error) override {
    EXPECT_FALSE(over());
    failed = error;
  }
  [[nodiscard]] bool over() const { return finished || failed; }

  std::string accepted;
  bool waited = false;
  std::optional<ForwardedHead> head;
  std::string body;
  int pieces = 0;
  int room = 1'000'000;
  bool finished = false;
  std::optional<Error> failed;
};

std::vector<std::shared_ptr<const catalog::Model>> models() {
  auto program = sim::make_model("program");
  program->settings.kind = catalog::Kind::kCommand;
  program->aliases = {"alias"};
  return {sim::make_model("demo"), program};
}

class ForwardingTest : public testing::Test, protected GatewayWorld {
 protected:
  ForwardingTest() : GatewayWorld(models()) {}

  // Every program from now on answers so.
  void answers(rpc::ForwardHead head, std::vector<std::string> pieces) {
    sim::WorkerScript script;
    script.head = std::move(head);
    script.tokens = std::move(pieces);
    runs(script);
  }
  void runs(const sim::WorkerScript& script) {
    world_.workers.set_script([script](const std::string&) { return script; });
  }
  std::shared_ptr<Forwarding> ask(std::shared_ptr<Client> client,
                                  const std::string& model = "program",
                                  const std::string& body = R"({"n":1.50,"model":"alias"})") {
    return Forwarding::start(services_, {},
                             {"r-1", model, "/v1/chat/completions", cut_at_model(body)},
                             world_.clock.now() + 10min, std::move(client));
  }
  bool run(const Client& client) {
    return world_.clock.run_until([&] { return client.over(); }, 1min);
  }
};

TEST_F(ForwardingTest, L27_ARequestStartsAProgramAndIsPassedOn) {
  answers({200, "application/json", ""}, {R"({"model":"th)", R"(eirs","n":12345678901234567890})"});
  const auto client = std::make_shared<Client>();
  ask(client, "alias");
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_EQ(client->accepted, "program");
  EXPECT_TRUE(client->waited);
  EXPECT_EQ(client->head->status, 200);
  EXPECT_FALSE(client->head->event_stream);
  EXPECT_EQ(client->body, R"({"model":"program","n":12345678901234567890})");
  EXPECT_EQ(world_.workers.newest("program")->forwarded().path, "/v1/chat/completions");
  EXPECT_THAT(world_.workers.newest("program")->forwarded().body,
              ElementsAre(R"({"n":1.50,"model":)", "}"));
  world_.clock.settle();
  EXPECT_EQ(world_.events.count("request.finished"), 1U);
}

TEST_F(ForwardingTest, L27_AStreamEndsWithDoneOrFails) {
  answers({200, "text/event-stream", ""}, {"data: {\"model\":\"x\"}\n\n", "data: [DONE]\n\n"});
  auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_TRUE(client->head->event_stream);
  EXPECT_EQ(client->body, "data: {\"model\":\"program\"}\n\ndata: [DONE]\n\n");
}

TEST_F(ForwardingTest, L27_AStreamIsOverWithDoneWhateverItsConnectionDoes) {
  std::vector<std::string> pieces(100'000, ": the program does not hang up\n\n");
  pieces.front() = "data: [DONE]\n\n";
  answers({200, "text/event-stream", ""}, std::move(pieces));
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_EQ(client->body, "data: [DONE]\n\n");
}

TEST_F(ForwardingTest, L27_AStreamWithoutAnEndIsNoCompleteOne) {
  answers({200, "text/event-stream", ""}, {"data: {\"model\":\"x\"}\n\n"});
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kWorkerDied);
  EXPECT_EQ(world_.events.count("request.failed"), 1U);
}

TEST_F(ForwardingTest, L27_RefusalsOfTheProgramArePassedOnAsTheyAre) {
  answers({429, "application/json", "7"}, {R"({"error":{"message":"full"}})"});
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_EQ(client->head->status, 429);
  EXPECT_EQ(client->head->retry_after, "7");
  EXPECT_EQ(client->body, R"({"error":{"message":"full"}})");
}

TEST_F(ForwardingTest, L27_RefusalsOfTheProgramAreNoSuccessesInTheRecords) {
  struct Case {
    unsigned int status;
    const char* reason;
  };
  for (const Case& each :
       {Case{400, "invalid_argument"}, Case{429, "queue_full"}, Case{503, "internal"}}) {
    answers({each.status, "application/json", ""}, {R"({"error":{"message":"secret"}})"});
    const auto client = std::make_shared<Client>();
    ask(client);
    ASSERT_TRUE(run(*client));
    EXPECT_TRUE(client->finished);
    world_.clock.settle();
    const residency::RequestRecord record = requests_.ended().front();
    EXPECT_EQ(record.stage, residency::RequestStage::kFailed);
    EXPECT_EQ(record.reason, each.reason);
    EXPECT_FALSE(record.first_token);
    bool gone = false;
    residency_.unload("program", true, [&](const auto&) { gone = true; });
    ASSERT_TRUE(world_.clock.run_until([&] { return gone; }, 1min));
  }
  EXPECT_EQ(world_.events.count("request.failed"), 3U);
  EXPECT_EQ(world_.events.count("request.finished"), 0U);
}

TEST_F(ForwardingTest, L27_AnErrorWithTheTypeOfAStreamIsAWholeAnswer) {
  answers({400, "text/event-stream", ""}, {"data: {\"error\":1}\n\n"});
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
  EXPECT_EQ(client->head->status, 400);
  EXPECT_FALSE(client->head->event_stream);
}

TEST_F(ForwardingTest, TheFirstTokenAndTheUsageOfAProgramAreRecorded) {
  answers({200, "application/json", ""}, {R"({"usage":{"prompt_tokens":9,"completion_tokens":2,)"
                                          R"("prompt_tokens_details":{"cached_tokens":4}}})"});
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  world_.clock.settle();
  const residency::RequestRecord record = requests_.ended().front();
  EXPECT_TRUE(record.to_first_token);
  EXPECT_EQ(record.tokens, 0U) << "nobody counted them";
  ASSERT_TRUE(record.usage);
  EXPECT_EQ(record.usage->prompt, 9U);
  EXPECT_EQ(record.usage->cached, 4U);
}

TEST_F(ForwardingTest, L27_WhatConcernsBerthAloneIsNotPassedOn) {
  for (const unsigned int status : {401U, 302U, 999U}) {
    answers({status, "text/html", ""}, {"<a href=/secret>"});
    const auto client = std::make_shared<Client>();
    ask(client);
    ASSERT_TRUE(run(*client));
    EXPECT_FALSE(client->head);
    EXPECT_EQ(client->body, "");
    ASSERT_TRUE(client->failed);
    EXPECT_EQ(client->failed->reason, Reason::kInternal);
    EXPECT_THAT(client->failed->message, HasSubstr(std::to_string(status)));
    bool gone = false;
    residency_.unload("program", true, [&](const auto&) { gone = true; });
    ASSERT_TRUE(world_.clock.run_until([&] { return gone; }, 1min));
  }
}

TEST_F(ForwardingTest, L27_AnAnswerWithoutATypeIsOfUnknownType) {
  answers({204, "", ""}, {});
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  EXPECT_EQ(client->head->content_type, "application/octet-stream");
}

TEST_F(ForwardingTest, L9_T72_AProgramThatDiesFailsItsRequestsWithTheCause) {
  sim::WorkerScript script;
  script.fate = sim::Fate::kDiesBusy;
  script.fate_after = 15ms;
  script.exit = core::Signalled{SIGKILL};
  script.head.content_type = "text/event-stream";
  runs(script);
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kWorkerDied);
  EXPECT_THAT(client->failed->message, HasSubstr("SIGKILL"));
}

TEST_F(ForwardingTest, T31_ACancelEndsTheWorkAndFreesThePlace) {
  sim::WorkerScript script;
  script.sequences = 1;
  script.tokens.assign(1000, "x");
  runs(script);
  const auto client = std::make_shared<Client>();
  const auto forwarding = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->pieces > 3; }, 1min));
  forwarding->cancel();
  world_.clock.settle();
  const int before = client->pieces;
  EXPECT_EQ(world_.events.count("request.cancelled"), 1U);
  EXPECT_EQ(world_.workers.newest("program")->generations(), 0U);
  const auto next = std::make_shared<Client>();
  ask(next);
  ASSERT_TRUE(world_.clock.run_until([&] { return next->pieces > 3; }, 1min));
  EXPECT_EQ(client->pieces, before);
  EXPECT_FALSE(client->over());
}

TEST_F(ForwardingTest, L27_AFullClientPausesAndGoesOn) {
  sim::WorkerScript script;
  script.tokens.assign(20, "x");
  runs(script);
  const auto client = std::make_shared<Client>();
  client->room = 5;
  const auto forwarding = ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->pieces == 5; }, 1min));
  world_.clock.advance(1min);
  EXPECT_EQ(client->pieces, 5);
  client->room = 1000;
  forwarding->resume();
  ASSERT_TRUE(run(*client));
  EXPECT_TRUE(client->finished);
}

TEST_F(ForwardingTest, L3_AForcedUnloadEndsWhatIsPassedOn) {
  sim::WorkerScript script;
  script.tokens.assign(100'000, "x");
  runs(script);
  const auto client = std::make_shared<Client>();
  ask(client);
  ASSERT_TRUE(world_.clock.run_until([&] { return client->pieces > 3; }, 1min));
  residency_.unload("program", true, [](const auto&) {});
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kConflict);
}

TEST_F(ForwardingTest, L27_ABodyWithoutAModelIsRefused) {
  const auto client = std::make_shared<Client>();
  ask(client, "program", R"({"model":null})");
  ASSERT_TRUE(run(*client));
  ASSERT_TRUE(client->failed);
  EXPECT_EQ(client->failed->reason, Reason::kInvalidArgument);
  EXPECT_EQ(client->failed->extras->param, "model");
  EXPECT_TRUE(world_.workers.all().empty());
}

TEST_F(ForwardingTest, L27_OnlyProgramsArePassedRequestsOn) {
  const auto client = std::make_shared<Client>();
  ask(client, "demo");
  ASSERT_TRUE(run(*client));
  EXPECT_EQ(client->failed->reason, Reason::kInternal);
  EXPECT_TRUE(world_.workers.all().empty());

  std::vector<std::string> said;
  for (const char* const name : {"demo", "alias", "none"}) {
    const Result<bool> forwarded = is_forwarded(services_, name);
    said.emplace_back(!forwarded ? "unknown" : *forwarded ? "yes" : "no");
  }
  EXPECT_THAT(said, ElementsAre("no", "yes", "unknown"));
}

TEST_F(ForwardingTest, NothingIsLeftOfAForwarding) {
  answers({200, "application/json", ""}, {"{}"});
  const auto client = std::make_shared<Client>();
  const std::weak_ptr<Forwarding> forwarding = ask(client);
  ASSERT_TRUE(run(*client));
  world_.clock.settle();
  EXPECT_TRUE(forwarding.expired());
  EXPECT_EQ(client.use_count(), 1);
}

}  // namespace
}  // namespace berth::gateway
