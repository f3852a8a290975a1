// Speculative decoding, under simulated time: the text never depends on what a draft proposes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/unit/worker/lanes/simulation.h"

namespace berth::worker {
namespace {

FakeSettings machine(std::uint32_t right_percent) {
  FakeSettings settings;
  settings.sequences = 2;
  settings.window = 512;
  settings.cells = 1024;
  settings.draft_tokens = 8;
  settings.draft_right_percent = right_percent;
  return settings;
}

TEST(Drafts, RightOnesSaveBatchesAndLeaveTheTextAlone) {
  Simulation simulation(machine(100));
  const auto prompt = talkative(60);
  const auto sink = simulation.submit(prompt);
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->text, answer_to(prompt));
  EXPECT_EQ(sink->ids, Simulation::tokens_of(answer_to(prompt)));
  EXPECT_LT(simulation.batches(), sink->text.size() / 4);
  EXPECT_GT(sink->result()->accepted_tokens, sink->text.size() / 2);
  EXPECT_GE(sink->result()->drafted_tokens, sink->result()->accepted_tokens);
}

TEST(Drafts, WrongOnesCostLittleAndLeaveTheTextAlone) {
  Simulation simulation(machine(0));
  simulation.engine.never_ends = true;
  auto job = simulation.job("a prompt");
  job->max_tokens = 480;
  const auto sink = simulation.submit(std::move(job));
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->text.size(), 480U);
  EXPECT_EQ(sink->result()->accepted_tokens, 0U);
  EXPECT_GT(sink->result()->drafted_tokens, 0U);
  EXPECT_LT(sink->result()->drafted_tokens, 20U);
  EXPECT_EQ(simulation.batches(), 480U);
}

TEST(Drafts, NeverBeyondMaxTokensOrTheWindow) {
  for (const std::uint32_t limit : {1U, 2U, 3U, 5U, 17U}) {
    Simulation simulation(machine(100));
    simulation.engine.never_ends = true;
    const std::string prompt(500, 'x');
    for (const std::uint32_t most : {limit, 1000U}) {
      auto job = simulation.job(prompt);
      job->max_tokens = most;
      const auto sink = simulation.submit(std::move(job));
      simulation.run();
      ASSERT_NE(sink->result(), nullptr);
      EXPECT_EQ(sink->text.size(), std::min<std::size_t>(most, 12));
      EXPECT_EQ(sink->result()->finish, JobResult::Finish::kLength);
    }
  }
}

TEST(Drafts, WhereNothingCanBeCutItsTokensAreReadAgainOnce) {
  Simulation simulation(machine(0));
  simulation.engine.keeps_nothing = true;
  const auto prompt = talkative(60);
  const auto sink = simulation.submit(prompt);
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->text, answer_to(prompt));
  EXPECT_EQ(sink->result()->cached_tokens, 0U);
  EXPECT_LE(sink->result()->drafted_tokens, 8U) << "one trial shows it";
}

TEST(Drafts, T31_ACancelledLaneEndsRightAfterItsBatch) {
  Simulation simulation(machine(100));
  const auto stays_prompt = talkative(40);
  const auto stays = simulation.submit(stays_prompt);
  const auto goes = simulation.submit(talkative(40, 150, "goes"));
  simulation.run(3);
  simulation.engine.on_decode = [&] { goes->wants_cancel = true; };
  simulation.run(2);
  EXPECT_TRUE(goes->was_cancelled());
  EXPECT_EQ(goes->ended_in_batch, 4U);
  simulation.run();
  EXPECT_EQ(stays->text, answer_to(stays_prompt));
}

TEST(Drafts, ProposalsOutsideTheVocabularyAreDropped) {
  Simulation simulation(machine(100));
  simulation.engine.on_draft = [](auto, std::size_t most, std::vector<TokenId>& out) {
    out.assign(most + 3, -1);
    if (most > 1) out[1] = 1 << 30;
  };
  const auto prompt = talkative(20);
  const auto sink = simulation.submit(prompt);
  simulation.run();
  ASSERT_NE(sink->result(), nullptr);
  EXPECT_EQ(sink->text, answer_to(prompt));
  EXPECT_EQ(sink->result()->drafted_tokens, 0U);
}

TEST(Drafts, OneThatNeverHasAGuessFades) {
  Simulation simulation(machine(100));
  simulation.engine.never_ends = true;
  int asked = 0;
  simulation.engine.on_draft = [&](auto, std::size_t, std::vector<TokenId>&) { ++asked; };
  auto job = simulation.job("a prompt");
  job->max_tokens = 480;
  const auto sink = simulation.submit(std::move(job));
  simulation.run();
  EXPECT_EQ(sink->text.size(), 480U);
  EXPECT_GT(asked, 2);
  EXPECT_LT(asked, 15);
}

TEST(Drafts, EveryLaneHasItsTurnWhereThereIsRoomForFew) {
  auto settings = machine(100);
  settings.sequences = 6;
  settings.window = 1024;
  settings.cells = 8192;
  settings.batch = 10;  // a token of each, and four proposals
  settings.endless = true;
  Simulation simulation(settings);
  std::vector<std::shared_ptr<Simulation::Sink>> sinks;
  for (int i = 0; i < 6; ++i) {
    auto job = simulation.job(std::to_string(i));
    job->max_tokens = 300;
    sinks.push_back(simulation.submit(std::move(job)));
  }
  simulation.run();
  for (const auto& sink : sinks) {
    ASSERT_NE(sink->result(), nullptr);
    EXPECT_GT(sink->result()->accepted_tokens, 50U);
  }
}

// The draft model reads 1000 tokens per second, the model much faster.
FakeSettings slow_draft(std::uint32_t sequences) {
  auto settings = machine(100);
  settings.sequences = sequences;
  settings.window = 8192;
  settings.cells = 30'000;
  settings.batch = 512;
  settings.prompt_speed = 10'000;
  settings.generation_speed = 50;
  settings.draft_speed = 1000;
  settings.endless = true;
  return settings;
}

TEST(Drafts, S2_ALongPromptIsReadInChunksByTheDraftModelToo) {
  Simulation simulation(slow_draft(3));
  const auto talking = simulation.submit("talk");
  simulation.run_until([&] { return talking->text.size() > 20; });
  auto long_job = simulation.job(std::string(4000, 'l'));
  long_job->max_tokens = 400;
  const auto drafted = simulation.submit(std::move(long_job));
  simulation.run_until([&] { return !drafted->text.empty(); });

  auto other_job = simulation.job(std::string(6000, 'o'));
  other_job->max_tokens = 1;
  const auto reading = simulation.submit(std::move(other_job));
  Duration longest{};
  std::size_t most_at_once = 0;
  std::size_t read = 0;
  simulation.engine.on_draft_read = [&](SequenceId, std::size_t, std::size_t count) {
    most_at_once = std::max(most_at_once, count);
    read += count;
  };
  while (!drafted->end) {
    const auto before = simulation.now();
    const auto said = talking->text.size();
    simulation.runner.turn();
    EXPECT_GT(talking->text.size(), said) << "each batch goes on with the answer";
    longest = std::max(longest, simulation.now() - before);
  }
  EXPECT_LE(longest, std::chrono::milliseconds(150));
  EXPECT_GE(read, 3900U);
  EXPECT_GE(most_at_once, 75U) << "and it reads as much as it may";
  EXPECT_LE(most_at_once, 110U);
  ASSERT_NE(reading->result(), nullptr);
  ASSERT_NE(drafted->result(), nullptr);
  EXPECT_GT(drafted->result()->accepted_tokens, 200U) << "once it has caught up";
}

// Not even for how long it takes: the draft model's cache tells nobody what another has asked.
TEST(Drafts, S8_T81_TheDraftModelReadsAnewForAnotherScope) {
  Simulation simulation(machine(100));
  simulation.engine.never_ends = true;
  std::size_t read = 0;
  simulation.engine.on_draft_read = [&](SequenceId, std::size_t, std::size_t count) {
    read += count;
  };
  const auto drafted_anew = [&](const std::string& scope) {
    // Both lanes, one after the other, so that neither is left out.
    std::vector<std::shared_ptr<Simulation::Sink>> sinks;
    read = 0;
    for (int i = 0; i < 2; ++i) {
      auto job = simulation.job(std::string(300, 'c'));
      job->cache_scope = scope;
      job->max_tokens = 30;
      sinks.push_back(simulation.submit(std::move(job)));
    }
    simulation.run();
    for (const auto& sink : sinks) EXPECT_NE(sink->result(), nullptr);
    return read >= 600;
  };
  EXPECT_TRUE(drafted_anew("one"));
  EXPECT_FALSE(drafted_anew("one"));
  EXPECT_TRUE(drafted_anew("two"));
  EXPECT_TRUE(drafted_anew(""));
  EXPECT_TRUE(drafted_anew("one"));
}

TEST(Drafts, T31_ACancelIsHeardWhileTheDraftModelReads) {
  Simulation simulation(slow_draft(1));
  const auto warm_up = simulation.submit(std::string(2000, 'w'));
  simulation.run_until([&] { return warm_up->text.size() > 10; });
  warm_up->wants_cancel = true;
  simulation.run();
  const auto sink = simulation.submit(std::string(4000, 'x'));
  simulation.run_until([&] { return !sink->text.empty(); });
  simulation.engine.on_draft_read = [&](SequenceId, std::size_t, std::size_t) {
    sink->wants_cancel = true;
  };
  const auto start = simulation.now();
  simulation.run(1);
  EXPECT_TRUE(sink->was_cancelled());
  EXPECT_LT(simulation.now() - start, std::chrono::milliseconds(10));
}

// Proposals that are right, wrong or anything, some with the token that ends the answer; answers
// that end by stop texts, at max_tokens, by cancel, by a sampling error; lanes that are parked;
// memory that cannot be cut: the text is the one that there is without a draft.
RC_GTEST_PROP(Drafts, TheTextIsTheOneWithoutDrafts, ()) {
  auto settings = machine(*rc::gen::element(0U, 30U, 70U, 95U, 100U));
  settings.sequences = *rc::gen::inRange<std::uint32_t>(1, 5);
  settings.window = *rc::gen::inRange<std::uint32_t>(40, 150);
  settings.cells = settings.window + *rc::gen::inRange<std::uint32_t>(0, 100);
  settings.batch = *rc::gen::inRange<std::uint32_t>(8, 40);
  settings.draft_tokens = *rc::gen::inRange<std::uint32_t>(1, 12);
  settings.shares_cells = *rc::gen::arbitrary<bool>();
  settings.endless = *rc::gen::arbitrary<bool>();
  settings.draft_speed = *rc::gen::element(0.0, 50.0, 1000.0);
  Simulation simulation(settings);
  simulation.engine.keeps_nothing = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  if (*rc::gen::arbitrary<bool>()) {
    const auto some = *rc::gen::inRange<TokenId>(0, 300);
    simulation.engine.on_draft = [some](auto tokens, std::size_t most, std::vector<TokenId>& out) {
      for (std::size_t i = 0; i < most; ++i) {
        out.push_back(i % 3 == 2 ? FakeEngine::kEnd
                                 : (some + static_cast<TokenId>(tokens.size())) % 257);
      }
    };
  }

  struct One {
    std::shared_ptr<Simulation::Sink> sink;
    std::string whole;  // without stop texts
    std::vector<std::string> stop;
    std::uint64_t fail_after;
  };
  std::vector<One> all;
  const auto count = *rc::gen::inRange(1, 8);
  for (int i = 0; i < count; ++i) {
    const auto size = *rc::gen::inRange<std::size_t>(1, 35);
    std::vector<TokenId> prompt(size, 'a');
    prompt.back() = 'b' + *rc::gen::inRange<TokenId>(0, 20);
    auto job = simulation.job(prompt);
    auto& sampler = Simulation::sampler_of(*job);
    sampler.seed = *rc::gen::element<std::uint64_t>(0, 0, 7);
    One one;
    one.fail_after = *rc::gen::weightedOneOf<std::uint64_t>(
        {{4, rc::gen::just(~std::uint64_t{0})}, {1, rc::gen::inRange<std::uint64_t>(0, 30)}});
    sampler.fail_after = one.fail_after;
    if (*rc::gen::arbitrary<bool>()) job->max_tokens = *rc::gen::inRange<std::uint32_t>(0, 80);
    // What the engine says without a limit, as far as it can go.
    auto text = prompt;
    const auto most = std::min<std::size_t>(job->max_tokens, settings.window - size);
    while (one.whole.size() < most) {
      auto next = FakeEngine::answer_to(text, 0, sampler.seed);
      if (next.empty() && !settings.endless) break;
      if (next.empty()) next = "z";
      one.whole.push_back(next.front());
      text.push_back(next.front());
    }
    if (*rc::gen::arbitrary<bool>() && one.whole.size() > 3) {
      const auto at = *rc::gen::inRange<std::size_t>(0, one.whole.size() - 2);
      one.stop = {one.whole.substr(at, *rc::gen::inRange<std::size_t>(1, 3)), "QQ"};
      job->stop = one.stop;
    }
    one.sink = simulation.submit(std::move(job));
    all.push_back(one);
    simulation.run(*rc::gen::inRange<std::size_t>(0, 6));
    if (*rc::gen::weightedElement<bool>({{6, false}, {1, true}})) one.sink->wants_cancel = true;
  }
  simulation.run();

  for (const auto& one : all) {
    const auto& sink = *one.sink;
    RC_ASSERT(sink.end.has_value());
    auto text = one.whole;
    if (!one.stop.empty()) text = text.substr(0, text.find(one.stop.front()));
    if (const auto* const error = sink.error()) {
      RC_ASSERT(error->reason == Reason::kInvalidArgument);
      RC_ASSERT(one.whole.size() >= one.fail_after);
      RC_ASSERT(text.starts_with(sink.text));
    } else if (sink.was_cancelled()) {
      RC_ASSERT(sink.wants_cancel);
      RC_ASSERT(text.starts_with(sink.text));
    } else {
      RC_ASSERT(sink.text == text);
      RC_ASSERT(sink.result()->cached_tokens == simulation.really_cached(sink));
      RC_ASSERT(sink.result()->accepted_tokens <= sink.result()->drafted_tokens);
      RC_ASSERT(sink.result()->accepted_tokens <= sink.result()->completion_tokens);
    }
  }
  RC_ASSERT(simulation.violations.empty());
}

}  // namespace
}  // namespace berth::worker
