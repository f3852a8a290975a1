#include "supervisor/gateway/openai/event_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/simulation/sim_clock.h"
#include "tests/unit/gateway/openai/fake_reply.h"

namespace berth::gateway::openai {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

class EventStreamTest : public testing::Test {
 protected:
  EventStreamTest() { stream_->watch(); }

  sim::SimClock clock_;
  std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  std::shared_ptr<EventStream> stream_ = std::make_shared<EventStream>(clock_, reply_);
  const core::Caller caller_{.entitled = true};
};

TEST_F(EventStreamTest, T33_HeadersAreThoseThatProxiesNeedEachOnce) {
  stream_->write("data: 1\n\n");
  ASSERT_TRUE(reply_->head);
  EXPECT_EQ(reply_->head->status, 200);
  EXPECT_EQ(reply_->head->content_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(FakeReply::header(*reply_->head, "Cache-Control"),
            std::vector<std::string>{"no-cache"});
  EXPECT_EQ(FakeReply::header(*reply_->head, "X-Accel-Buffering"), std::vector<std::string>{"no"});
  EXPECT_TRUE(FakeReply::header(*reply_->head, "Content-Type").empty());
}

TEST_F(EventStreamTest, TheFirstDataCommits) {
  stream_->show("loading 5 %");
  clock_.advance(900ms);
  EXPECT_FALSE(reply_->head);
  EXPECT_TRUE(stream_->write("data: 1\n\n"));
  EXPECT_EQ(reply_->body, "data: 1\n\n");
}

TEST_F(EventStreamTest, T30_ASecondOfWaitingCommitsAndShowsTheState) {
  stream_->show("queued, position 3");
  clock_.advance(999ms);
  EXPECT_FALSE(reply_->head);
  clock_.advance(1ms);
  ASSERT_TRUE(reply_->head);
  EXPECT_EQ(reply_->body, ": queued, position 3\n\n");
}

TEST_F(EventStreamTest, ARefusalWithinTheFirstSecondHasItsStatus) {
  clock_.advance(900ms);
  stream_->fail(Error(Reason::kQueueFull, "Full."), "r-1", caller_);
  ASSERT_TRUE(reply_->sent);
  EXPECT_EQ(reply_->sent->status, 429);
  clock_.advance(1min);
  EXPECT_FALSE(reply_->head);
}

TEST_F(EventStreamTest, ALaterFailureIsAnErrorEventAndTheLast) {
  clock_.advance(2s);
  stream_->fail(Error(Reason::kLoadFailed, "It broke."), "r-1", caller_);
  EXPECT_TRUE(reply_->ended);
  EXPECT_TRUE(reply_->body.ends_with("\n\n"));
  EXPECT_TRUE(reply_->has("data: {\"error\":{\"message\":\"It broke.\""));
  EXPECT_FALSE(reply_->has("[DONE]"));
  const std::string before = reply_->body;
  EXPECT_TRUE(stream_->write("data: 2\n\n"));
  stream_->end("data: 3\n\n");
  clock_.advance(1min);
  EXPECT_EQ(reply_->body, before);
}

TEST_F(EventStreamTest, AStateIsShownWhereItChangedAFewTimesASecond) {
  for (int i = 0; i < 1000; ++i) {
    stream_->show("loading " + std::to_string(i / 10) + " %");
    clock_.advance(10ms);
  }
  EXPECT_GE(reply_->pieces.size(), 15U);
  EXPECT_LE(reply_->pieces.size(), 21U);
  EXPECT_EQ(reply_->pieces.back().rfind(": loading 9", 0), 0U) << reply_->pieces.back();
}

TEST_F(EventStreamTest, T32_NoSilenceIsLongerThan15Seconds) {
  stream_->show("prefill 60 %");
  clock_.advance(1s);
  std::size_t before = reply_->pieces.size();
  for (int i = 0; i < 20; ++i) {
    clock_.advance(15s);
    EXPECT_GT(reply_->pieces.size(), before);
    before = reply_->pieces.size();
  }
  EXPECT_LE(before, 31U) << "more than needed";
  EXPECT_EQ(reply_->pieces.back(), ": prefill 60 %\n\n");

  stream_->write("data: 1\n\n");
  before = reply_->pieces.size();
  clock_.advance(9s);
  EXPECT_EQ(reply_->pieces.size(), before);
  clock_.advance(6s);
  EXPECT_EQ(reply_->pieces.back(), ": keep-alive\n\n");
}

TEST_F(EventStreamTest, ACommentNeverStandsWithinALine) {
  stream_->write("data: half");
  clock_.advance(1min);
  EXPECT_EQ(reply_->body, "data: half");
  stream_->fail(Error(Reason::kWorkerDied, "Died."), "r-1", caller_);
  EXPECT_TRUE(reply_->has("data: half\n\ndata: {\"error\""));
}

TEST_F(EventStreamTest, AClientThatDoesNotReadGetsNoPileOfComments) {
  reply_->room = false;
  EXPECT_FALSE(stream_->write("data: 1\n\n"));
  EXPECT_FALSE(stream_->has_room());
  clock_.advance(10min);
  EXPECT_EQ(reply_->pieces.size(), 1U);
  reply_->room = true;
  stream_->on_room();
  EXPECT_TRUE(stream_->has_room());
  clock_.advance(15s);
  EXPECT_EQ(reply_->pieces.back(), ": keep-alive\n\n");
}

TEST_F(EventStreamTest, NothingIsSentToAClientThatIsGone) {
  clock_.advance(2s);
  const std::size_t before = reply_->pieces.size();
  stream_->on_gone();
  stream_->write("data: 1\n\n");
  stream_->end("");
  clock_.advance(1min);
  EXPECT_EQ(reply_->pieces.size(), before);
  EXPECT_FALSE(reply_->ended);
}

TEST_F(EventStreamTest, NoTimerIsLeftOfIt) {
  stream_.reset();
  clock_.settle();
  EXPECT_FALSE(clock_.next_timer());
}

TEST(StateText, SaysWhatIsWaitedFor) {
  residency::ClaimProgress progress;
  progress.queue_position = 3;
  EXPECT_EQ(state_text(progress), "queued, position 3");
  progress.eta = 11500ms;
  EXPECT_EQ(state_text(progress), "queued, position 3, about 12 s");
  progress.queue_position.reset();
  progress.eta.reset();
  progress.fraction = 0.43F;
  EXPECT_EQ(state_text(progress), "loading 43 %");
  EXPECT_EQ(state_text(core::PrefillEvent{60, 100}), "prefill 60 %");
  EXPECT_EQ(state_text(core::PrefillEvent{0, 0}), "prefill 0 %");
}

}  // namespace
}  // namespace berth::gateway::openai
