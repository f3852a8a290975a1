#include "supervisor/gateway/openai/forwarded_answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/sim_clock.h"
#include "tests/unit/gateway/openai/fake_reply.h"

namespace berth::gateway::openai {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

class ForwardedAnswerTest : public testing::Test {
 protected:
  std::shared_ptr<ForwardedAnswer> answer(bool streams) {
    auto made = std::make_shared<ForwardedAnswer>(
        clock_, Exchange{"r-1", core::Caller{.entitled = true}, reply_}, streams);
    made->run([this] { ++resumes_; }, [this, held = held_] { ++cancels_; },
              [this, held = held_](const Error& why) { aborts_.push_back(why.reason); });
    return made;
  }
  static ForwardedHead stream_head() { return {200, "text/event-stream", "", true}; }
  static ForwardedHead json_head(int status) { return {status, "application/json", "", false}; }

  sim::SimClock clock_;
  std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  int resumes_ = 0;
  int cancels_ = 0;
  std::vector<Reason> aborts_;
  std::shared_ptr<int> held_ = std::make_shared<int>();  // by what is run
};

TEST_F(ForwardedAnswerTest, AnAnswerIsSentWhenItIsComplete) {
  const auto made = answer(false);
  made->on_head(json_head(200));
  made->on_piece("{\"a\":");
  EXPECT_FALSE(reply_->sent || reply_->head);
  made->on_piece("1}");
  made->on_finished();
  ASSERT_TRUE(reply_->sent);
  EXPECT_EQ(reply_->sent->status, 200);
  EXPECT_EQ(reply_->sent->content_type, "application/json");
  EXPECT_EQ(reply_->sent->body, "{\"a\":1}");
}

TEST_F(ForwardedAnswerTest, AProgramsRefusalKeepsItsStatus) {
  const auto made = answer(true);
  ForwardedHead head = json_head(429);
  head.retry_after = "7";
  made->on_head(head);
  made->on_piece("{\"error\":{}}");
  made->on_finished();
  ASSERT_TRUE(reply_->sent);
  EXPECT_EQ(reply_->sent->status, 429);
  EXPECT_EQ(FakeReply::header(*reply_->sent, "Retry-After"), std::vector<std::string>{"7"});
  clock_.advance(1min);
  EXPECT_FALSE(reply_->head);
}

TEST_F(ForwardedAnswerTest, AProgramsRefusalAfterASecondIsAnErrorEvent) {
  const auto made = answer(true);
  clock_.advance(2s);
  made->on_head(json_head(400));
  made->on_piece("{\n \"error\": {\"message\": \"No.\"}\n}");
  made->on_finished();
  EXPECT_TRUE(reply_->body.ends_with("data: {\"error\":{\"message\":\"No.\"}}\n\n"))
      << reply_->body;
  EXPECT_TRUE(reply_->ended);
}

TEST_F(ForwardedAnswerTest, AnErrorInTheShapeOfAStreamIsAnErrorEventToo) {
  const auto made = answer(true);
  clock_.advance(2s);
  made->on_head({400, "text/event-stream", "", false});
  made->on_piece("data: {\"error\":{\"message\":\"No.\"}}\n\ndata: [DONE]\n\n");
  made->on_finished();
  EXPECT_TRUE(reply_->body.ends_with("data: {\"error\":{\"message\":\"No.\"}}\n\n"))
      << reply_->body;
}

TEST_F(ForwardedAnswerTest, AnErrorThatIsTooLongToBeReadIsOneOfOurs) {
  const auto made = answer(true);
  clock_.advance(2s);
  made->on_head(json_head(400));
  made->on_piece("{\"error\":\"" + std::string(std::size_t{65} << 10U, 'x') + "\"}");
  made->on_finished();
  EXPECT_TRUE(reply_->has("\"code\":\"internal\""));
  EXPECT_FALSE(reply_->has("xxxx"));
}

TEST_F(ForwardedAnswerTest, WhatIsNoStreamIsAnErrorWhereOneHasBegun) {
  const auto made = answer(true);
  clock_.advance(2s);
  made->on_head(json_head(200));
  made->on_piece("{\"choices\":[]}");
  made->on_finished();
  EXPECT_TRUE(reply_->has("\"code\":\"internal\""));
  EXPECT_TRUE(reply_->ended);
}

TEST_F(ForwardedAnswerTest, T30_T33_AStreamPassesAsItComesWithOurHeaders) {
  const auto made = answer(true);
  residency::ClaimProgress loading;
  loading.fraction = 0.5;
  made->on_waiting(loading);
  clock_.advance(1s);
  EXPECT_EQ(reply_->body, ": loading 50 %\n\n");
  EXPECT_EQ(FakeReply::header(*reply_->head, "X-Accel-Buffering"), std::vector<std::string>{"no"});
  made->on_head(stream_head());
  EXPECT_TRUE(made->on_piece("data: {\"a\""));
  clock_.advance(1min);
  EXPECT_TRUE(made->on_piece(":1}\n\ndata: [DONE]\n\n"));
  made->on_finished();
  EXPECT_TRUE(reply_->body.ends_with("data: {\"a\":1}\n\ndata: [DONE]\n\n")) << reply_->body;
  EXPECT_TRUE(reply_->ended);
}

TEST_F(ForwardedAnswerTest, AStreamThatBreaksOffEndsInAnErrorEvent) {
  const auto made = answer(true);
  made->on_head(stream_head());
  made->on_piece("data: {\"a\"");
  made->on_failed(Error(Reason::kWorkerDied, "It died."));
  EXPECT_TRUE(reply_->has("data: {\"a\"\n\ndata: {\"error\":{\"message\":\"It died.\""));
  EXPECT_TRUE(reply_->ended);
}

TEST_F(ForwardedAnswerTest, AnAnswerThatBreaksOffHasAnErrorsStatus) {
  const auto made = answer(false);
  made->on_head(json_head(200));
  made->on_piece("{\"a\"");
  made->on_failed(Error(Reason::kWorkerDied, "It died."));
  ASSERT_TRUE(reply_->sent);
  EXPECT_EQ(reply_->sent->status, 500);
}

TEST_F(ForwardedAnswerTest, AnAnswerIsBounded) {
  const auto made = answer(false);
  made->on_head(json_head(200));
  for (int i = 0; i < 70; ++i) made->on_piece(std::string(std::size_t{1} << 20U, ' '));
  ASSERT_TRUE(reply_->sent);
  EXPECT_EQ(reply_->sent->status, 500);
  // Not as if the client had hung up.
  EXPECT_EQ(cancels_, 0);
  EXPECT_EQ(aborts_, std::vector<Reason>{Reason::kInternal});
  made->on_failed(Error(Reason::kInternal, "too long"));
  EXPECT_EQ(held_.use_count(), 1);
}

TEST_F(ForwardedAnswerTest, T31_AClientThatLeavesCancels) {
  const auto made = answer(true);
  made->on_gone();
  EXPECT_EQ(cancels_, 1);
  EXPECT_EQ(held_.use_count(), 1);
}

TEST_F(ForwardedAnswerTest, ASlowClientPausesTheProgram) {
  const auto made = answer(true);
  made->on_head(stream_head());
  reply_->room = false;
  EXPECT_FALSE(made->on_piece("data: 1\n\n"));
  made->on_room();
  EXPECT_EQ(resumes_, 1);
}

}  // namespace
}  // namespace berth::gateway::openai
