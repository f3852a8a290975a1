#include "supervisor/residency/in_flight.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/result.h"
#include "supervisor/rpc/worker_client.h"
#include "tests/unit/residency/harness.h"

namespace berth::residency {
namespace {

// A client whose calls do nothing but note their cancellation.
class NotingClient : public rpc::WorkerClient {
 public:
  class Call : public rpc::GenerateCall {
   public:
    explicit Call(NotingClient& client) : client_(client) {}
    void cancel() override { ++client_.cancelled; }
    void resume() override { ++client_.resumed; }

   private:
    NotingClient& client_;
  };

  std::unique_ptr<rpc::GenerateCall> generate(const core::GenerateRequest& /*request*/,
                                              SteadyTime /*deadline*/,
                                              std::shared_ptr<rpc::GenerateSink> sink) override {
    sinks.push_back(std::move(sink));
    return std::make_unique<Call>(*this);
  }
  std::unique_ptr<rpc::WorkerCall> embed(const core::EmbedRequest& /*request*/,
                                         SteadyTime /*deadline*/,
                                         rpc::OnAnswer<core::Embeddings> done) override {
    embeds.push_back(std::move(done));
    return std::make_unique<Call>(*this);
  }
  std::unique_ptr<rpc::WorkerCall> tokenize(const core::TokenizeRequest& /*request*/,
                                            SteadyTime /*deadline*/,
                                            rpc::OnAnswer<core::Tokens> /*done*/) override {
    return std::make_unique<Call>(*this);
  }
  std::unique_ptr<rpc::WorkerCall> count_tokens(const core::TokenizeRequest& /*request*/,
                                                SteadyTime /*deadline*/,
                                                rpc::OnAnswer<core::TokenCount> /*done*/) override {
    return std::make_unique<Call>(*this);
  }
  std::unique_ptr<rpc::WorkerCall> detokenize(
      const core::DetokenizeRequest& /*request*/, SteadyTime /*deadline*/,
      rpc::OnAnswer<core::DetokenizedText> /*done*/) override {
    return std::make_unique<Call>(*this);
  }
  void cancel_load() override {}
  void set_threads(std::uint32_t /*threads*/) override {}

  int cancelled = 0;
  int resumed = 0;
  std::vector<std::shared_ptr<rpc::GenerateSink>> sinks;
  std::vector<rpc::OnAnswer<core::Embeddings>> embeds;
};

TEST(InFlight, L3_RevokingCancelsAllThatRuns) {
  NotingClient client;
  const auto in_flight = std::make_shared<InFlight>();
  const auto sink = std::make_shared<TestSink>();
  const auto one = in_flight->generate(client, {}, {}, sink);
  auto ended = in_flight->generate(client, {}, {}, std::make_shared<TestSink>());
  ended.reset();
  const auto two = in_flight->generate(client, {}, {}, std::make_shared<TestSink>());
  one->resume();
  EXPECT_EQ(client.resumed, 1);
  in_flight->revoke();
  EXPECT_EQ(client.cancelled, 2);
  client.sinks.front()->on_end(fail(Reason::kInternal, "cancelled"));
  EXPECT_EQ(sink->end->error().reason, Reason::kWorkerDied);
}

TEST(InFlight, L3_ACallWithOneAnswerIsRevokedToo) {
  NotingClient client;
  const auto in_flight = std::make_shared<InFlight>();
  std::vector<Result<core::Embeddings>> answers;
  const auto ask = [&] {
    return in_flight->ask<core::Embeddings>(
        [&](Result<core::Embeddings> answer) { answers.push_back(std::move(answer)); },
        [&](rpc::OnAnswer<core::Embeddings> done) {
          return client.embed({}, {}, std::move(done));
        });
  };
  const auto first = ask();
  client.embeds.at(0)(core::Embeddings{});
  const auto second = ask();
  in_flight->revoke();
  EXPECT_EQ(client.cancelled, 2);
  client.embeds.at(1)(fail(Reason::kInternal, "cancelled"));
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[0]);
  EXPECT_EQ(answers[1].error().reason, Reason::kWorkerDied);
}

TEST(InFlight, L3_WhatStartsAfterwardsIsCancelledToo) {
  NotingClient client;
  const auto in_flight = std::make_shared<InFlight>();
  in_flight->revoke();
  const auto call = in_flight->generate(client, {}, {}, std::make_shared<TestSink>());
  EXPECT_EQ(client.cancelled, 1);
}

TEST(InFlight, AnEndOfItsOwnIsPassedOnAsItIs) {
  NotingClient client;
  const auto in_flight = std::make_shared<InFlight>();
  const auto sink = std::make_shared<TestSink>();
  const auto call = in_flight->generate(client, {}, {}, sink);
  client.sinks.front()->on_event(core::TokenEvent{.text = "x", .ids = {}});
  EXPECT_EQ(sink->text, "x");
  client.sinks.front()->on_end(fail(Reason::kDeadline, "too late"));
  EXPECT_EQ(sink->end->error().reason, Reason::kDeadline);
}

struct NotingForwardSink : rpc::ForwardSink {
  void on_head(rpc::ForwardHead /*head*/) override {}
  bool on_piece(std::string /*piece*/) override { return true; }
  void on_end(Status status) override { end = std::move(status); }
  std::optional<Status> end;
};

TEST(InFlight, L27_AWorkerOfOurOwnIsPassedNothingOn) {
  NotingClient client;
  const auto in_flight = std::make_shared<InFlight>();
  const auto sink = std::make_shared<NotingForwardSink>();
  const auto call = in_flight->forward(client, {}, {}, sink);
  ASSERT_TRUE(sink->end && !*sink->end);
  EXPECT_EQ(sink->end->error().reason, Reason::kInvalidArgument);
}

}  // namespace
}  // namespace berth::residency
