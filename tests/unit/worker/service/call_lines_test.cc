#include "worker/service/call_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/lanes/lane_runner.h"
#include "worker/service/preparer.h"

namespace berth::worker {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);

// A call whose work waits until it may end.
class ScriptedCall final : public PendingCall, public std::enable_shared_from_this<ScriptedCall> {
 public:
  explicit ScriptedCall(bool is_chat = false, std::optional<std::uint64_t> deadline = {})
      : is_chat_(is_chat), deadline_(deadline) {}

  class Work final : public CallWork {
   public:
    explicit Work(std::shared_ptr<ScriptedCall> call) : call_(std::move(call)) {}
    void run(Preparer& /*preparer*/) override {
      call_->has_begun = true;
      call_->begun.set_value();
      if (call_->waits) call_->may_end.get_future().wait_for(kPatience);
    }
    void deliver() override { call_->outcome_.set_value("delivered"); }

   private:
    std::shared_ptr<ScriptedCall> call_;
  };

  [[nodiscard]] SteadyTime arrived() const override { return arrived_; }
  [[nodiscard]] bool cancelled() const override { return is_cancelled; }
  void on_end(JobEnd end) override {
    const auto* const error = std::get_if<Error>(&end);
    outcome_.set_value(error == nullptr ? "cancelled"
                                        : std::string(reason_info(error->reason).name));
  }
  [[nodiscard]] bool needs_template() const override { return is_chat_; }
  [[nodiscard]] std::optional<std::uint64_t> deadline_ms() const override { return deadline_; }
  [[nodiscard]] std::unique_ptr<CallWork> take_work() override {
    if (goes_away) is_cancelled = true;
    return std::make_unique<Work>(shared_from_this());
  }

  // How it ended; a second end is a failure of the test by an exception.
  std::string outcome() {
    return future_.wait_for(kPatience) == std::future_status::ready ? future_.get() : "nothing";
  }
  [[nodiscard]] bool ended() const {
    return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::atomic<bool> is_cancelled{false};
  bool waits = false;
  bool goes_away = false;  // while its request is copied
  std::atomic<bool> has_begun{false};
  std::promise<void> begun;
  std::promise<void> may_end;

 private:
  const bool is_chat_;
  const std::optional<std::uint64_t> deadline_;
  const SteadyTime arrived_ = steady_now();
  std::promise<std::string> outcome_;
  std::future<std::string> future_ = outcome_.get_future();
};

struct NoObserver final : LaneObserver {
  void on_activity() override {}
  void on_drained() override {}
};

class CallLinesTest : public testing::Test {
 protected:
  ~CallLinesTest() override {
    lines_.end_threads();
    for (auto& thread : threads_) thread.join();
  }
  void start() {
    for (const auto line : {CallLines::Line::kChats, CallLines::Line::kOthers}) {
      threads_.emplace_back([this, line] { lines_.run(line, preparer_); });
    }
    threads_.emplace_back([this] { lines_.run_deadlines(); });
  }
  std::shared_ptr<ScriptedCall> push(bool is_chat = false,
                                     std::optional<std::uint64_t> deadline = {},
                                     bool waits = false) {
    auto call = std::make_shared<ScriptedCall>(is_chat, deadline);
    call->waits = waits;
    lines_.push(call);
    return call;
  }
  // One that is being worked on until it may end.
  std::shared_ptr<ScriptedCall> push_stuck(bool is_chat,
                                           std::optional<std::uint64_t> deadline = {}) {
    auto call = push(is_chat, deadline, true);
    // Where its deadline was quicker, its work may never begin.
    const auto begun = call->begun.get_future();
    while (!call->ended()) {
      if (begun.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready) break;
    }
    return call;
  }

  NoObserver observer_;
  LaneRunner runner_{observer_};
  Preparer preparer_{runner_, {}};  // never asked
  CallLines lines_;
  std::vector<std::thread> threads_;
};

TEST_F(CallLinesTest, WorkIsDoneAndDelivered) {
  start();
  EXPECT_EQ(push()->outcome(), "delivered");
  EXPECT_EQ(push(true)->outcome(), "delivered");
}

TEST_F(CallLinesTest, AStuckChatHoldsUpChatsOnly) {
  start();
  const auto stuck = push_stuck(true);
  const auto behind = push(true);
  EXPECT_EQ(push(false)->outcome(), "delivered");
  EXPECT_FALSE(behind->ended());
  stuck->may_end.set_value();
  EXPECT_EQ(stuck->outcome(), "delivered");
  EXPECT_EQ(behind->outcome(), "delivered");
}

TEST_F(CallLinesTest, ACancelledCallEndsAtOnceAndIsNotDelivered) {
  start();
  const auto stuck = push_stuck(false);
  const auto behind = push(false);
  EXPECT_FALSE(lines_.abandoned(CallLines::Line::kOthers));
  stuck->is_cancelled = true;
  behind->is_cancelled = true;
  lines_.sweep();
  EXPECT_EQ(stuck->outcome(), "cancelled");
  EXPECT_EQ(behind->outcome(), "cancelled");
  EXPECT_TRUE(lines_.abandoned(CallLines::Line::kOthers));
  stuck->may_end.set_value();
  EXPECT_EQ(push()->outcome(), "delivered");  // the thread has gone on without delivering
}

TEST_F(CallLinesTest, NoWorkIsDoneForACallThatEndedBeforeIt) {
  const auto gone = std::make_shared<ScriptedCall>();
  gone->goes_away = true;
  lines_.push(gone);
  start();
  EXPECT_EQ(gone->outcome(), "cancelled");
  EXPECT_EQ(push()->outcome(), "delivered");  // the thread has gone on
  EXPECT_FALSE(gone->has_begun);
}

TEST_F(CallLinesTest, DeadlinesEndWhatWaitsAndWhatIsWorkedOn) {
  start();
  const auto stuck = push_stuck(false, 20);
  const auto behind = push(false, 20);
  EXPECT_EQ(stuck->outcome(), "deadline");
  EXPECT_EQ(behind->outcome(), "deadline");
  stuck->may_end.set_value();
  EXPECT_EQ(push(false, ~std::uint64_t{0})->outcome(), "delivered");
}

TEST_F(CallLinesTest, StopEndsEverythingAndWhatComes) {
  start();
  const auto stuck = push_stuck(true);
  const auto behind = push(true);
  lines_.stop();
  EXPECT_EQ(stuck->outcome(), "shutting_down");
  EXPECT_EQ(behind->outcome(), "shutting_down");
  EXPECT_EQ(push()->outcome(), "shutting_down");
  stuck->may_end.set_value();
}

TEST_F(CallLinesTest, PostedTasksComeBeforeTheNextCall) {
  start();
  const auto stuck = push_stuck(false);
  const auto behind = push(false);
  std::promise<bool> posted;
  lines_.post(CallLines::Line::kOthers, [&] { posted.set_value(behind->has_begun); });
  stuck->may_end.set_value();
  auto came_after = posted.get_future();
  ASSERT_EQ(came_after.wait_for(kPatience), std::future_status::ready);
  EXPECT_FALSE(came_after.get());
  EXPECT_EQ(behind->outcome(), "delivered");
}

TEST_F(CallLinesTest, PostedTasksAreDoneAlsoAfterStop) {
  lines_.stop();
  std::promise<void> posted;
  lines_.post(CallLines::Line::kOthers, [&] { posted.set_value(); });
  start();
  EXPECT_EQ(posted.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(CallLinesTest, EachLineIsBounded) {
  std::vector<std::shared_ptr<ScriptedCall>> waiting;
  for (std::size_t i = 0; i < CallLines::kQueueLimit; ++i) waiting.push_back(push(true));
  EXPECT_EQ(push(true)->outcome(), "queue_full");
  const auto other = push(false);
  EXPECT_FALSE(other->ended());
  lines_.stop();
  for (const auto& call : waiting) EXPECT_EQ(call->outcome(), "shutting_down");
}

}  // namespace
}  // namespace berth::worker
