// Prompts beside decode (S2), under simulated time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "tests/unit/worker/lanes/simulation.h"

namespace berth::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 1000 tokens of a prompt, 50 of an answer per second.
FakeSettings machine(std::uint32_t sequences) {
  FakeSettings settings;
  settings.sequences = sequences;
  settings.window = 8192;
  settings.cells = 20'000;
  settings.batch = 512;
  settings.prompt_speed = 1000;
  settings.generation_speed = 50;
  return settings;
}

TEST(Chunks, S2_AlonePromptsAreReadInWholeBatches) {
  Simulation simulation(machine(2));
  const auto sink = simulation.submit(std::string(2000, 'x'));
  simulation.run();
  EXPECT_THAT(sink->prefills, testing::ElementsAre(512U, 1024U, 1536U));
}

TEST(Chunks, S2_BesideDecodeAChunkTakesATenthOfASecond) {
  auto settings = machine(2);
  settings.endless = true;
  Simulation simulation(settings);
  auto first = simulation.job(std::string(600, 'a'));
  first->max_tokens = 2000;
  const auto talking = simulation.submit(std::move(first));
  simulation.run_until([&] { return talking->text.size() > 3; });

  auto second = simulation.job(std::string(4000, 'b'));
  second->max_tokens = 1;
  const auto reading = simulation.submit(std::move(second));
  Duration longest{};
  std::size_t largest = 0;
  while (!reading->end) {
    const auto before = simulation.now();
    const auto said = talking->text.size();
    simulation.runner.turn();
    EXPECT_EQ(talking->text.size(), said + 1) << "each batch goes on with the answer";
    longest = std::max(longest, simulation.now() - before);
    largest = std::max(largest, simulation.last_batch.size());
  }
  EXPECT_LE(longest, milliseconds(150));
  EXPECT_GE(largest, 75U) << "and it reads as much as it may";
  EXPECT_LE(largest, 110U);
}

TEST(Chunks, S2_AShortPromptDoesNotWaitForALongOne) {
  auto settings = machine(4);
  settings.endless = true;
  Simulation simulation(settings);
  auto talk = simulation.job(std::string(300, 't'));
  talk->max_tokens = 4000;
  const auto talking = simulation.submit(std::move(talk));
  simulation.run_until([&] { return !talking->text.empty(); });
  auto long_job = simulation.job(std::string(4096, 'l'));
  long_job->max_tokens = 1;
  const auto long_sink = simulation.submit(std::move(long_job));
  simulation.run(5);

  auto short_job = simulation.job(std::string(40, 's'));
  short_job->max_tokens = 1;
  const auto arrived = simulation.now();
  const auto short_sink = simulation.submit(std::move(short_job));
  simulation.run_until([&] { return short_sink->end.has_value(); });
  EXPECT_LE(short_sink->first_text_at - arrived, milliseconds(300));
  EXPECT_FALSE(long_sink->end.has_value());
}

TEST(Chunks, S2_AShortPromptIsReadInAChunkAlsoWhereNobodyGenerates) {
  Simulation simulation(machine(4));
  const auto long_sink = simulation.submit(std::string(4096, 'l'));
  simulation.run(1);
  const auto arrived = simulation.now();
  auto short_job = simulation.job(std::string(40, 's'));
  short_job->max_tokens = 1;
  const auto short_sink = simulation.submit(std::move(short_job));
  simulation.run(1);
  EXPECT_TRUE(short_sink->end.has_value());
  EXPECT_LE(simulation.now() - arrived, milliseconds(150));
  EXPECT_FALSE(long_sink->end.has_value());
}

// Submits `prompt` once so much time has passed of the batch that is computed next.
void submit_within_batch(Simulation& simulation, Duration after, const std::string& prompt,
                         std::shared_ptr<Simulation::Sink>& sink) {
  simulation.engine.pause = [&simulation, at = simulation.now() + after, prompt,
                             &sink](Duration time) {
    simulation.pass(time);
    if (!sink && simulation.now() >= at) sink = simulation.submit(prompt);
  };
}

TEST(Chunks, S2_PromptsThatComeTogetherAreReadInOneBatch) {
  Simulation simulation(machine(4));
  simulation.submit(std::string(400, 'w'));  // how fast it reads
  simulation.run();
  const auto first = simulation.submit(std::string(160, 'a'));
  std::shared_ptr<Simulation::Sink> second;
  submit_within_batch(simulation, milliseconds(5), std::string(200, 'b'), second);
  const auto began = simulation.now();
  simulation.run_until([&] { return !first->text.empty(); });
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(second->text.empty()) << "both have their first token from one batch";
  EXPECT_LE(simulation.now() - began, milliseconds(360 + 20 + 10));
  simulation.run();
  EXPECT_EQ(first->text, answer_to(std::string(160, 'a')));
  EXPECT_EQ(second->text, answer_to(std::string(200, 'b')));
}

TEST(Chunks, S2_WhoComesLateInABatchDoesNotThrowItAway) {
  Simulation simulation(machine(4));
  simulation.submit(std::string(400, 'w'));
  simulation.run();
  const auto first = simulation.submit(std::string(160, 'a'));
  std::shared_ptr<Simulation::Sink> second;
  submit_within_batch(simulation, milliseconds(20), std::string(200, 'b'), second);
  simulation.run_until([&] { return !first->text.empty(); });
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->text.empty());
}

TEST(Chunks, S2_AStreamOfArrivalsCostsABatchNoMoreThanAPartOfItsTime) {
  Simulation simulation(machine(64));
  simulation.submit(std::string(400, 'w'));
  simulation.run();
  const auto first = simulation.submit(std::string(400, 'a'));
  const auto began = simulation.now();
  int number = 0;
  simulation.engine.pause = [&](Duration time) {
    simulation.pass(time);
    if (number < 40) simulation.submit(std::string(1, 'b') + std::to_string(number++));
  };
  simulation.run_until([&] { return !first->text.empty(); });
  EXPECT_LE(simulation.now() - began, milliseconds(400 + 400 / 16 + 100 + 150));
}

TEST(Chunks, S2_ManyShortPromptsDoNotStarveALongOne) {
  Simulation simulation(machine(4));
  auto long_job = simulation.job(std::string(4096, 'l'));
  long_job->max_tokens = 1;
  const auto arrived = simulation.now();
  const auto long_sink = simulation.submit(std::move(long_job));
  int number = 0;
  while (!long_sink->end && simulation.now() - arrived < seconds(100)) {
    while (simulation.runner.activity().waiting < 4) {
      auto one = simulation.job(std::to_string(number++) + std::string(400, 's'));
      one->max_tokens = 3;
      simulation.submit(std::move(one));
    }
    simulation.runner.turn();
  }
  ASSERT_NE(long_sink->result(), nullptr);
  // Alone it takes 4 s; a quarter of every chunk is its own.
  EXPECT_LE(long_sink->ended_at - arrived, seconds(25));
  EXPECT_GT(number, 20);
}

TEST(Chunks, S2_EveryLaneHasItsTokenInEveryBatch) {
  auto settings = machine(1000);
  settings.batch = 1000;
  settings.window = 256;
  settings.cells = 256'000;
  settings.endless = true;
  Simulation simulation(settings);
  std::vector<std::shared_ptr<Simulation::Sink>> sinks;
  for (int i = 0; i < 256; ++i) {
    auto job = simulation.job(std::to_string(i));
    job->max_tokens = 20;
    sinks.push_back(simulation.submit(std::move(job)));
  }
  simulation.run();
  for (const auto& sink : sinks) {
    ASSERT_NE(sink->result(), nullptr);
    EXPECT_EQ(sink->text.size(), 20U);
  }
  EXPECT_LE(simulation.batches(), 25U);
}

TEST(Chunks, S2_BesideManyLanesPromptsAreReadAsFastAsBesideOne) {
  auto settings = machine(40);
  settings.endless = true;
  settings.cells = 100'000;
  Simulation simulation(settings);
  for (int i = 0; i < 39; ++i) {
    auto job = simulation.job(std::to_string(i));
    job->max_tokens = 1000;
    simulation.submit(std::move(job));
    simulation.run(1);
  }
  auto job = simulation.job(std::string(4000, 'p'));
  job->max_tokens = 1;
  const auto reading = simulation.submit(std::move(job));
  simulation.run_until([&] { return reading->end.has_value(); });
  EXPECT_LT(simulation.batches(), 39U + 100U) << "250 chunks of 16 tokens";
}

TEST(Chunks, L9_ProgressGrowsWithinABatch) {
  Simulation simulation(machine(1));
  std::uint64_t before = 0;
  bool grew = false;
  simulation.engine.on_decode = [&] { before = simulation.runner.progress(); };
  simulation.engine.pause = [&](Duration time) {
    simulation.pass(time);
    grew = grew || simulation.runner.progress() > before + 1;
  };
  simulation.submit(std::string(500, 'x'));
  simulation.run(1);
  EXPECT_TRUE(grew);
}

TEST(Chunks, T31_CancelAndDeadlineEndABatchThatNobodyElseShares) {
  Simulation simulation(machine(1));
  const auto cancelled = simulation.submit(std::string(512, 'x'));
  simulation.engine.on_decode = [&] { cancelled->wants_cancel = true; };
  auto start = simulation.now();
  simulation.run(1);
  EXPECT_TRUE(cancelled->was_cancelled());
  EXPECT_LT(simulation.now() - start, milliseconds(10)) << "the batch would take half a second";

  simulation.engine.on_decode = nullptr;
  auto late = simulation.job(std::string(512, 'x'));
  late->deadline = simulation.now() + milliseconds(30);
  const auto sink = simulation.submit(std::move(late));
  start = simulation.now();
  simulation.run(1);
  ASSERT_NE(sink->error(), nullptr);
  EXPECT_EQ(sink->error()->reason, Reason::kDeadline);
  EXPECT_LT(simulation.now() - start, milliseconds(50));
}

TEST(Chunks, T31_CancelInASharedBatchEndsRightAfterIt) {
  Simulation simulation(machine(2));
  const auto stays = simulation.submit(talkative(20));
  const auto goes = simulation.submit(talkative(20, 150, "other"));
  simulation.engine.on_decode = [&] { goes->wants_cancel = true; };
  simulation.run(2);
  EXPECT_TRUE(goes->was_cancelled());
  EXPECT_EQ(goes->ended_in_batch, 1U);
  simulation.run();
  EXPECT_NE(stays->result(), nullptr);
}

TEST(Chunks, ThreadsAreSetBeforeTheNextBatch) {
  auto settings = machine(1);
  settings.threads = 4;
  Simulation simulation(settings);
  simulation.submit(std::string(100, 'x'));
  simulation.runner.set_threads(3);
  simulation.engine.on_decode = [&] { EXPECT_EQ(simulation.engine.compute_threads, 3U); };
  simulation.run(1);
}

TEST(Chunks, AGrammarThatAllowsNothingEndsItsOwnJobOnly) {
  Simulation simulation(machine(2));
  const auto good_prompt = talkative(20);
  const auto good = simulation.submit(good_prompt);
  auto bad_job = simulation.job(talkative(20, 150, "bad"));
  Simulation::sampler_of(*bad_job).fail_after = 5;
  const auto bad = simulation.submit(std::move(bad_job));
  simulation.run();
  ASSERT_NE(bad->error(), nullptr);
  EXPECT_EQ(bad->error()->reason, Reason::kInvalidArgument);
  EXPECT_EQ(bad->text.size(), 5U);
  EXPECT_NE(good->result(), nullptr);
  EXPECT_EQ(good->text, answer_to(good_prompt));
}

TEST(Chunks, TheSameRequestsGiveTheSameBatches) {
  const auto run = [] {
    Simulation simulation(machine(3));
    std::vector<std::shared_ptr<Simulation::Sink>> sinks;
    for (int i = 0; i < 8; ++i) {
      sinks.push_back(simulation.submit(std::string(100, static_cast<char>('a' + i))));
    }
    simulation.run();
    std::vector<std::pair<SequenceId, std::uint32_t>> shape;
    for (const auto& item : simulation.items) shape.emplace_back(item.sequence, item.position);
    return shape;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace berth::worker
