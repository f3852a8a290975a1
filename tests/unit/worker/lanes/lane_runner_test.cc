#include "worker/lanes/lane_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_engine/fake_engine.h"
#include "worker/lanes/proof.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr auto kPatience = seconds(60);  // never waited for unless something is broken

std::vector<TokenId> tokens(std::string_view text) {
  return {text.begin(), text.end()};
}

class FakeSink final : public JobSink {
 public:
  void on_prefill(std::uint32_t done, std::uint32_t /*total*/) override {
    const std::lock_guard lock(mutex_);
    prefills_.push_back(done);
  }
  void on_token(std::string_view text, std::span<const SampledToken> tokens) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(text.empty() && tokens.empty());
    EXPECT_FALSE(end_.has_value());
    text_ += text;
    for (const auto& token : tokens) ids_.push_back(token.token);
    counts_.push_back(tokens.size());
    if (text_.size() >= room_) full_ = true;
    changed_.notify_all();
  }
  void on_end(JobEnd end) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(end_.has_value()) << "ended twice";
    end_ = std::move(end);
    changed_.notify_all();
  }
  [[nodiscard]] bool has_room() const override { return !full_; }
  [[nodiscard]] bool cancelled() const override {
    if (look_awaited_.exchange(false)) at_look_();
    return cancelled_;
  }

  // Called once, when it is next asked whether it was cancelled.
  void at_next_look(std::function<void()> call) {
    at_look_ = std::move(call);
    look_awaited_ = true;
  }
  void cancel() { cancelled_ = true; }
  // Takes so many bytes of text, then has no room.
  void set_room(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    room_ = bytes;
    full_ = text_.size() >= room_;
  }
  JobEnd wait_end() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return end_.has_value(); }));
    return end_.value_or(JobEnd{JobCancelled{}});
  }
  void wait_text(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return text_.size() >= bytes; }));
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::vector<TokenId> ids() {
    const std::lock_guard lock(mutex_);
    return ids_;
  }
  // Tokens of each call.
  std::vector<std::size_t> counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  std::vector<std::uint32_t> prefills() {
    const std::lock_guard lock(mutex_);
    return prefills_;
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return end_.has_value();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::vector<TokenId> ids_;
  std::vector<std::size_t> counts_;
  std::vector<std::uint32_t> prefills_;
  std::function<void()> at_look_;
  mutable std::atomic<bool> look_awaited_{false};
  std::size_t room_ = SIZE_MAX;
  std::optional<JobEnd> end_;
  std::atomic<bool> full_{false};
  std::atomic<bool> cancelled_{false};
};

// A gate in the engine: the context thread waits there within a batch.
class Gate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  // Context thread.
  void pass(const std::function<bool()>& give_up) {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    while (closed_ && !give_up()) changed_.wait_for(lock, milliseconds(1));
    waiting_ = false;
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return waiting_; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  bool waiting_ = false;
};

class CountingObserver final : public LaneObserver {
 public:
  void on_activity() override { ++activities_; }
  void on_drained() override {
    const std::lock_guard lock(mutex_);
    ++drained_;
    changed_.notify_all();
  }
  [[nodiscard]] int activities() const { return activities_; }
  int wait_drained() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this] { return drained_ > 0; }));
    return drained_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int drained_ = 0;
  std::atomic<int> activities_{0};
};

class LaneRunnerTest : public testing::Test {
 protected:
  ~LaneRunnerTest() override { stop(); }

  void start(std::uint32_t sequences, std::uint32_t window = 256, std::uint32_t batch = 64) {
    engine_ = std::make_unique<FakeEngine>(sequences, window, batch);
    engine_->on_violation = [](const std::string& what) { ADD_FAILURE() << what; };
    engine_->on_decode = [this] { gate_.pass([this] { return engine_->abort_wanted(); }); };
    thread_ = std::thread([this] { runner_.run(*engine_); });
  }
  void stop() {
    runner_.stop();
    if (thread_.joinable()) thread_.join();
  }

  std::unique_ptr<Job> job(const std::vector<TokenId>& prompt) {
    auto made = std::make_unique<Job>();
    made->prompt = prompt;
    made->sampler = std::make_unique<FakeEngine::FakeSampler>();
    made->arrived = now();
    made->sink = std::make_shared<FakeSink>();
    return made;
  }
  static std::shared_ptr<FakeSink> sink_of(const Job& job) {
    return std::static_pointer_cast<FakeSink>(job.sink);
  }
  std::shared_ptr<FakeSink> submit(std::unique_ptr<Job> made) {
    auto sink = sink_of(*made);
    EXPECT_TRUE(runner_.submit(std::move(made)).has_value());
    return sink;
  }
  std::shared_ptr<FakeSink> submit(const std::vector<TokenId>& prompt) {
    return submit(job(prompt));
  }

  SteadyTime now() const { return SteadyTime(milliseconds(now_ms_.load())); }

  std::atomic<std::int64_t> now_ms_{1000};
  Gate gate_;
  std::unique_ptr<FakeEngine> engine_;
  CountingObserver observer_;
  LaneRunner runner_{observer_, [this] { return now(); }, nullptr};
  std::thread thread_;
};

JobResult result_of(const JobEnd& end) {
  const auto* const result = std::get_if<JobResult>(&end);
  EXPECT_NE(result, nullptr);
  return result != nullptr ? *result : JobResult{};
}

Reason reason_of(const JobEnd& end) {
  const auto* const error = std::get_if<Error>(&end);
  EXPECT_NE(error, nullptr);
  return error != nullptr ? error->reason : Reason::kInternal;
}

TEST_F(LaneRunnerTest, AnswersAsTheEngineSays) {
  start(1);
  const auto prompt = tokens("What is it?");
  const auto sink = submit(prompt);
  const auto result = result_of(sink->wait_end());
  const auto answer = FakeEngine::answer_to(prompt);
  EXPECT_EQ(sink->text(), answer);
  EXPECT_EQ(sink->ids(), tokens(answer));
  EXPECT_EQ(result.finish, JobResult::Finish::kStop);
  EXPECT_EQ(result.prompt_tokens, prompt.size());
  EXPECT_EQ(result.completion_tokens, answer.size());
  EXPECT_EQ(result.cached_tokens, 0U);
}

TEST_F(LaneRunnerTest, L6_ProvesWithOneTokenAndLeavesNothingBehind) {
  FakeEngine engine(1);
  ASSERT_TRUE(prove(engine, Proof::kOneToken, [] { return false; }).has_value());
  EXPECT_EQ(engine.computed_tokens, 1U);
  const std::vector<BatchItem> first = {BatchItem{0, 'x', 0, true}};
  std::string problem;
  EXPECT_EQ(engine.decode(first, problem), DecodeOutcome::kDone);

  FakeEngine broken(1);
  broken.fail_next = true;
  const auto proof = prove(broken, Proof::kOneToken, [] { return false; });
  ASSERT_FALSE(proof.has_value());
  EXPECT_THAT(proof.error().message, testing::HasSubstr("the test says so"));
}

TEST_F(LaneRunnerTest, L6_T61_ProvesWithAFullMicroBatch) {
  FakeEngine engine(2, 64, 32);
  ASSERT_TRUE(prove(engine, Proof::kMicroBatch, [] { return false; }).has_value());
  EXPECT_EQ(engine.computed_tokens, 32U);
  const std::vector<BatchItem> first = {BatchItem{0, 'x', 0, true}};
  std::string problem;
  EXPECT_EQ(engine.decode(first, problem), DecodeOutcome::kDone) << "nothing is left behind";

  FakeEngine small(1, 16, 32);
  ASSERT_TRUE(prove(small, Proof::kMicroBatch, [] { return false; }).has_value());
  EXPECT_EQ(small.computed_tokens, 16U) << "no more than the window";

  FakeEngine broken(1, 64, 32);
  broken.fail_next = true;
  const auto proof = prove(broken, Proof::kMicroBatch, [] { return false; });
  ASSERT_FALSE(proof.has_value());
  EXPECT_THAT(proof.error().message, testing::HasSubstr("could not compute 32 tokens"));
}

TEST_F(LaneRunnerTest, L6_WhatGivesNoUsableEmbeddingIsNotReady) {
  FakeSettings settings;
  settings.purpose = Purpose::kEmbed;
  settings.embedding_size = 4;
  FakeEngine engine(settings);
  EXPECT_TRUE(prove(engine, Proof::kOneToken, [] { return false; }).has_value());
  engine.unusable_token = 0;
  const auto proof = prove(engine, Proof::kOneToken, [] { return false; });
  ASSERT_FALSE(proof.has_value());
  EXPECT_THAT(proof.error().message, testing::HasSubstr("NaN"));
}

TEST_F(LaneRunnerTest, S1_WorksInTheOrderOfArrival) {
  gate_.close();
  start(1);
  std::vector<std::shared_ptr<FakeSink>> sinks;
  for (const char* const text : {"one", "two", "three", "four"}) {
    sinks.push_back(submit(tokens(text)));
  }
  gate_.wait_for_arrival();
  gate_.open();
  for (std::size_t i = sinks.size(); i-- > 0;) {
    sinks[i]->wait_end();
    for (std::size_t before = 0; before < i; ++before) EXPECT_TRUE(sinks[before]->ended());
  }
}

TEST_F(LaneRunnerTest, S4_AJobThatLeftTheQueueIsActive) {
  gate_.close();
  start(1);
  const auto first = submit(tokens("first"));
  const auto second = submit(tokens("second"));
  gate_.wait_for_arrival();
  EXPECT_EQ(runner_.activity().active, 1U);
  EXPECT_EQ(runner_.activity().waiting, 1U);
  gate_.open();
  first->wait_end();
  second->wait_end();
  EXPECT_GE(observer_.activities(), 1);
}

TEST_F(LaneRunnerTest, CancelEndsTheJobWithinABatchAndTheNextOneIsRight) {
  gate_.close();
  start(1);
  const auto prompt = tokens("the same beginning");
  const auto first = submit(prompt);
  gate_.wait_for_arrival();
  first->cancel();
  runner_.wake();
  EXPECT_TRUE(std::holds_alternative<JobCancelled>(first->wait_end()));
  gate_.open();
  const auto second = submit(prompt);
  result_of(second->wait_end());
  EXPECT_EQ(second->text(), FakeEngine::answer_to(prompt));
}

TEST_F(LaneRunnerTest, CancelWhileWaitingTakesItOutOfTheQueue) {
  gate_.close();
  start(1);
  const auto first = submit(tokens("first"));
  const auto second = submit(tokens("second"));
  const auto third = submit(tokens("third"));
  gate_.wait_for_arrival();
  second->cancel();
  runner_.wake();
  gate_.open();
  EXPECT_TRUE(std::holds_alternative<JobCancelled>(second->wait_end()));
  EXPECT_EQ(second->text(), "");
  result_of(first->wait_end());
  result_of(third->wait_end());
}

TEST_F(LaneRunnerTest, CancelOfOneLaneLeavesTheOthersBatchAlone) {
  gate_.close();
  start(2);
  const auto prompt = tokens("stays");
  const auto stays = submit(prompt);
  const auto goes = submit(tokens("goes"));
  gate_.wait_for_arrival();
  goes->cancel();
  runner_.wake();
  gate_.open();
  EXPECT_TRUE(std::holds_alternative<JobCancelled>(goes->wait_end()));
  result_of(stays->wait_end());
  EXPECT_EQ(stays->text(), FakeEngine::answer_to(prompt));
}

// A prompt whose answer is long enough to be interrupted.
std::vector<TokenId> talkative(std::size_t at_least) {
  for (int i = 0;; ++i) {
    auto prompt = tokens("prompt " + std::to_string(i));
    const auto size = FakeEngine::answer_to(prompt).size();
    if (size >= at_least && size < 150) return prompt;
  }
}

TEST_F(LaneRunnerTest, SlowReaderPausesItsLaneAndNoOther) {
  start(2);
  const auto prompt = talkative(20);
  auto slow = job(prompt);
  const auto slow_sink = sink_of(*slow);
  slow_sink->set_room(3);
  submit(std::move(slow));
  slow_sink->wait_text(3);

  const auto other_prompt = tokens("another one");
  const auto other = submit(other_prompt);
  result_of(other->wait_end());
  EXPECT_EQ(other->text(), FakeEngine::answer_to(other_prompt));
  EXPECT_FALSE(slow_sink->ended());
  EXPECT_EQ(slow_sink->text().size(), 3U);

  slow_sink->set_room(SIZE_MAX);
  runner_.wake();
  result_of(slow_sink->wait_end());
  EXPECT_EQ(slow_sink->text(), FakeEngine::answer_to(prompt));
}

TEST_F(LaneRunnerTest, SlowReaderCanBeCancelled) {
  start(1);
  auto slow = job(talkative(20));
  const auto sink = sink_of(*slow);
  sink->set_room(2);
  submit(std::move(slow));
  sink->wait_text(2);
  sink->cancel();
  runner_.wake();
  EXPECT_TRUE(std::holds_alternative<JobCancelled>(sink->wait_end()));
}

// The wake-up comes while a turn is under way that has looked at the lane already: whichever of two
// lanes is looked at first, one of both jobs is cancelled too late for its turn.
TEST_F(LaneRunnerTest, ACancelWithinATurnIsNotForgotten) {
  start(2);
  for (const std::size_t ends : {0U, 1U}) {
    std::vector<std::shared_ptr<FakeSink>> sinks;
    for (int i = 0; i < 2; ++i) {
      auto paused = job(talkative(20));
      sinks.push_back(sink_of(*paused));
      sinks.back()->set_room(2);
      submit(std::move(paused));
      sinks.back()->wait_text(2);
    }
    sinks[1 - ends]->at_next_look([&] {
      sinks[ends]->cancel();
      runner_.wake();
    });
    runner_.wake();
    EXPECT_TRUE(std::holds_alternative<JobCancelled>(sinks[ends]->wait_end()));
    sinks[1 - ends]->cancel();
    runner_.wake();
    sinks[1 - ends]->wait_end();
  }
}

// All that it says are control tokens, which have no text.
class SilentEngine final : public FakeEngine {
 public:
  SilentEngine() : FakeEngine(1) { never_ends = true; }
  void append_piece(TokenId token, std::string& out, bool show_control) const override {
    if (show_control) FakeEngine::append_piece(token, out, true);
  }
};

TEST_F(LaneRunnerTest, TokensWithoutTextAreToldOfToo) {
  SilentEngine engine;
  runner_.open(engine);
  for (const std::uint32_t tokens_wanted : {1U, 130U}) {
    auto made = job(tokens("prompt"));
    made->max_tokens = tokens_wanted;
    const auto sink = submit(std::move(made));
    while (runner_.turn()) {
    }
    EXPECT_EQ(result_of(sink->wait_end()).completion_tokens, tokens_wanted);
    EXPECT_EQ(sink->text(), "");
    EXPECT_EQ(sink->ids().size(), tokens_wanted);
    EXPECT_EQ(sink->counts(), tokens_wanted == 1 ? std::vector<std::size_t>{1}
                                                 : std::vector<std::size_t>({64, 64, 2}));
  }
}

TEST_F(LaneRunnerTest, DeadlineEndsWaitingRunningAndPausedJobs) {
  start(1);
  auto running = job(talkative(20));
  const auto running_sink = sink_of(*running);
  running_sink->set_room(2);
  running->deadline = now() + milliseconds(500);
  submit(std::move(running));
  running_sink->wait_text(2);
  auto waiting = job(tokens("waits"));
  waiting->deadline = now() + milliseconds(400);
  const auto waiting_sink = submit(std::move(waiting));

  now_ms_ += 450;
  runner_.wake();
  EXPECT_EQ(reason_of(waiting_sink->wait_end()), Reason::kDeadline);
  EXPECT_FALSE(running_sink->ended());
  now_ms_ += 100;
  runner_.wake();
  EXPECT_EQ(reason_of(running_sink->wait_end()), Reason::kDeadline);
}

TEST_F(LaneRunnerTest, DrainFinishesWhatIsThereAndRefusesMore) {
  gate_.close();
  start(1);
  const auto first = submit(tokens("first"));
  const auto second = submit(tokens("second"));
  gate_.wait_for_arrival();
  runner_.drain();
  const auto refused = runner_.submit(job(tokens("late")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, Reason::kDraining);
  gate_.open();
  result_of(first->wait_end());
  result_of(second->wait_end());
  EXPECT_EQ(observer_.wait_drained(), 1);
}

TEST_F(LaneRunnerTest, DrainOfAnIdleRunnerIsAnswered) {
  start(1);
  runner_.drain();
  observer_.wait_drained();
}

TEST_F(LaneRunnerTest, StopEndsEverythingWithAReason) {
  gate_.close();
  start(1);
  const auto running = submit(tokens("running"));
  const auto waiting = submit(tokens("waiting"));
  gate_.wait_for_arrival();
  stop();
  EXPECT_EQ(reason_of(running->wait_end()), Reason::kShuttingDown);
  EXPECT_EQ(reason_of(waiting->wait_end()), Reason::kShuttingDown);
  const auto refused = runner_.submit(job(tokens("late")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, Reason::kShuttingDown);
}

TEST_F(LaneRunnerTest, QueueIsBounded) {
  gate_.close();
  start(1);
  submit(tokens("running"));
  gate_.wait_for_arrival();
  for (std::size_t i = 0; i < LaneRunner::kQueueLimit; ++i) submit(tokens("waits"));
  const auto refused = runner_.submit(job(tokens("one too many")));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason, Reason::kQueueFull);
  gate_.open();
}

TEST_F(LaneRunnerTest, FailedBatchEndsItsJobsAndTheNextOneIsRight) {
  start(1);
  engine_->fail_next = true;
  const auto prompt = tokens("some words");
  const auto first = submit(prompt);
  EXPECT_EQ(reason_of(first->wait_end()), Reason::kInternal);
  const auto second = submit(prompt);
  result_of(second->wait_end());
  EXPECT_EQ(second->text(), FakeEngine::answer_to(prompt));
}

TEST_F(LaneRunnerTest, KeepsTheCommonPrefixOfTheLastJob) {
  start(1);
  const auto first = submit(tokens("A long beginning. One"));
  result_of(first->wait_end());
  const auto prompt = tokens("A long beginning. Two");
  const auto second = submit(prompt);
  EXPECT_EQ(result_of(second->wait_end()).cached_tokens, std::string("A long beginning. ").size());
  EXPECT_EQ(second->text(), FakeEngine::answer_to(prompt));
  // The same again: all but the last token, whose output is needed.
  const auto third = submit(prompt);
  EXPECT_EQ(result_of(third->wait_end()).cached_tokens, prompt.size() - 1);
  EXPECT_EQ(third->text(), FakeEngine::answer_to(prompt));
}

TEST_F(LaneRunnerTest, ReadsAllWhereThePrefixCannotBeKept) {
  start(1);
  engine_->keeps_nothing = true;
  const auto prompt = tokens("A beginning");
  submit(prompt)->wait_end();
  const auto second = submit(prompt);
  EXPECT_EQ(result_of(second->wait_end()).cached_tokens, 0U);
  EXPECT_EQ(second->text(), FakeEngine::answer_to(prompt));
}

TEST_F(LaneRunnerTest, EndsWhenTheWindowIsFull) {
  start(1, 24);
  const auto prompt = talkative(40);
  ASSERT_LT(prompt.size(), 23U);
  const auto sink = submit(prompt);
  const auto result = result_of(sink->wait_end());
  EXPECT_EQ(result.finish, JobResult::Finish::kLength);
  EXPECT_EQ(result.completion_tokens, 24 - prompt.size());
  EXPECT_EQ(sink->text(), FakeEngine::answer_to(prompt).substr(0, 24 - prompt.size()));
}

TEST_F(LaneRunnerTest, MaxTokensAreNeverExceeded) {
  start(1);
  const auto prompt = talkative(20);
  for (const std::uint32_t limit : {0U, 1U, 7U}) {
    auto limited = job(prompt);
    limited->max_tokens = limit;
    const auto sink = submit(std::move(limited));
    const auto result = result_of(sink->wait_end());
    EXPECT_EQ(result.finish, JobResult::Finish::kLength);
    EXPECT_EQ(result.completion_tokens, limit);
    EXPECT_EQ(sink->text(), FakeEngine::answer_to(prompt).substr(0, limit));
  }
}

TEST_F(LaneRunnerTest, EndsBeforeAStopText) {
  start(1);
  const auto prompt = talkative(20);
  const auto answer = FakeEngine::answer_to(prompt);
  const auto stop = answer.substr(8, 4);
  auto stopped = job(prompt);
  stopped->stop = {stop, "ZZ"};
  const auto sink = submit(std::move(stopped));
  const auto result = result_of(sink->wait_end());
  EXPECT_EQ(result.finish, JobResult::Finish::kStop);
  EXPECT_EQ(result.stop_text, stop);
  EXPECT_EQ(sink->text(), answer.substr(0, answer.find(stop)));
}

TEST_F(LaneRunnerTest, LongPromptsAreReadInChunksAndReported) {
  start(1, 256, 64);
  const auto prompt = tokens(std::string(150, 'x'));
  const auto sink = submit(prompt);
  result_of(sink->wait_end());
  EXPECT_THAT(sink->prefills(), testing::ElementsAre(64U, 128U));
  EXPECT_EQ(sink->text(), FakeEngine::answer_to(prompt).substr(0, sink->text().size()));
}

TEST_F(LaneRunnerTest, L9_ProgressGrowsWithinABatch) {
  gate_.close();
  start(1);
  const auto sink = submit(tokens("x"));
  gate_.wait_for_arrival();
  const auto before = runner_.progress();
  const auto bound = std::chrono::steady_clock::now() + kPatience;
  while (runner_.progress() == before && std::chrono::steady_clock::now() < bound) {
    std::this_thread::yield();
  }
  EXPECT_GT(runner_.progress(), before);
  gate_.open();
  sink->wait_end();
}

TEST_F(LaneRunnerTest, M4_AJobBeginsWhenItsCellsAreFree) {
  gate_.close();
  start(2, 100);
  auto first = job(tokens("first"));
  first->max_tokens = 60;
  const auto first_sink = submit(std::move(first));
  gate_.wait_for_arrival();
  auto second = job(tokens("second"));
  second->max_tokens = 60;
  const auto second_sink = submit(std::move(second));
  auto third = job(tokens("third"));  // would fit, but the second was there before
  third->max_tokens = 1;
  const auto third_sink = submit(std::move(third));
  gate_.open();
  result_of(first_sink->wait_end());
  result_of(second_sink->wait_end());
  result_of(third_sink->wait_end());
  EXPECT_EQ(second_sink->text(), FakeEngine::answer_to(tokens("second")).substr(0, 60));
}

TEST_F(LaneRunnerTest, M4_TheYoungestIsParkedAndNoAnswerIsCut) {
  // Two answers of 20 and more in a pool that does not hold both.
  start(2, 60, 16);
  auto old_prompt = talkative(30);
  auto young_prompt = old_prompt;
  do {
    young_prompt.push_back('!');
  } while (FakeEngine::answer_to(young_prompt).size() < 30);
  young_prompt.resize(std::min<std::size_t>(young_prompt.size(), 20));
  const auto whole = [](const std::vector<TokenId>& prompt) {
    return FakeEngine::answer_to(prompt).substr(0, 60 - prompt.size());
  };
  const auto old_sink = submit(old_prompt);
  const auto young_sink = submit(young_prompt);
  result_of(old_sink->wait_end());
  result_of(young_sink->wait_end());
  EXPECT_EQ(old_sink->text(), whole(old_prompt));
  EXPECT_EQ(young_sink->text(), whole(young_prompt));
}

// Whatever the pool's size: it is never exceeded, and every answer is the one that the job would
// have got alone.
RC_GTEST_FIXTURE_PROP(LaneRunnerTest, M4_AnswersDoNotDependOnThePool, ()) {
  const auto sequences = *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto window = *rc::gen::inRange<std::uint32_t>(40, 120);
  start(sequences, window, *rc::gen::inRange<std::uint32_t>(4, 40));
  struct One {
    std::shared_ptr<FakeSink> sink;
    std::string answer;
  };
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 30);
    std::vector<TokenId> prompt(size, 'a');
    prompt.back() = 'b' + *rc::gen::inRange<TokenId>(0, 20);
    auto made = job(prompt);
    if (*rc::gen::arbitrary<bool>()) made->max_tokens = *rc::gen::inRange<std::uint32_t>(1, 80);
    const auto limit = std::min<std::size_t>(made->max_tokens, window - size);
    all.push_back(One{submit(std::move(made)), FakeEngine::answer_to(prompt).substr(0, limit)});
  }
  for (const auto& one : all) {
    const auto end = one.sink->wait_end();
    RC_ASSERT(std::holds_alternative<JobResult>(end));
    RC_ASSERT(one.sink->text() == one.answer);
  }
}

// However jobs share lanes, batches and prefixes: every answer is the one that the job would have
// got alone.
RC_GTEST_FIXTURE_PROP(LaneRunnerTest, AnswersDoNotDependOnTheOthers, ()) {
  start(*rc::gen::inRange<std::uint32_t>(1, 5), 256, *rc::gen::inRange<std::uint32_t>(8, 40));
  const auto beginning = *rc::gen::container<std::string>(rc::gen::inRange('a', 'e'));
  struct One {
    std::vector<TokenId> prompt;
    std::shared_ptr<FakeSink> sink;
    bool cancelled;
  };
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const auto rest = *rc::gen::container<std::string>(rc::gen::inRange('a', 'e'));
    const auto shared = *rc::gen::inRange<std::size_t>(0, beginning.size() + 1);
    auto prompt = tokens("p" + beginning.substr(0, shared) + rest);
    prompt.resize(std::min<std::size_t>(prompt.size(), 100));
    auto one = job(prompt);
    one->max_tokens = 100;
    auto sink = sink_of(*one);
    const bool cancel = *rc::gen::weightedElement<bool>({{5, false}, {1, true}});
    submit(std::move(one));
    if (cancel) {
      sink->cancel();
      runner_.wake();
    }
    all.push_back(One{prompt, sink, cancel});
  }
  for (auto& one : all) {
    const auto end = one.sink->wait_end();
    const auto answer = FakeEngine::answer_to(one.prompt).substr(0, 100);
    if (one.cancelled) {
      RC_ASSERT(answer.starts_with(one.sink->text()));
    } else {
      RC_ASSERT(std::holds_alternative<JobResult>(end));
      RC_ASSERT(one.sink->text() == answer);
    }
  }
}

}  // namespace
}  // namespace berth::worker
